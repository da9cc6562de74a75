// Package poke speaks the protocol of the verified reload: a client that changed configuration asks for the restart of a
// workload by writing, as an annotation, the digest of the configuration it has seen. The webhook compares that digest
// with the live state, stamps the pod template and purges the annotation, or rejects the write.
//
// pod-reloader's own loop uses it for every reload. Other programs can use it as a client library: they need a client, a
// workload and a digest, and no other package of this module. The package keeps no state and starts no goroutine.
package poke

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// Request asks for the reload of one workload.
type Request struct {
	schema.GroupVersionKind
	Namespace, Name string
	// Digest of the configuration that was seen: the content digest that pod-reloader writes on pod templates, SAP's
	// revision digest, or AnyCurrent, which is bound to the Generation even if that is 0.
	Digest string
	// Refs are the config objects that a content digest is over; nil if they are not known. A Record may have others as well, which
	// a flag or an annotation hides from the workload for a time: without Refs, the answer is then Purged where it would be Current.
	Refs []Ref
	// Generation of the workload that was read; 0 leaves it open. If the workload has another generation, the request is
	// stale, and the webhook purges it. Without it, Reloaded may also mean an earlier reload by the same digest.
	Generation int64
	// UID of the workload that was read; empty leaves it open. If the workload was deleted and created again since, the
	// request is stale: generations begin again, so that the answer may show a reload of the other workload.
	UID types.UID
	// Keys are the annotations of the installation; the zero value has the default prefix. See NewKeys.
	Keys Keys
	// Further is what the same write does besides, as operations of a JSON patch; nil if nothing. Nothing is stored where a test among them
	// fails, nor where the workload has no annotations: the error then satisfies apierrors.IsInvalid. The webhook does not look at them.
	// Where one tests last-reload, another last-reload in the answer is that of this request.
	Further []jsonpatch.Operation
}

// Outcome is the result of a reload request.
type Outcome string

const (
	// Reloaded means that the webhook verified the digest and stamped the template: a rollout has begun. If the request
	// has no Generation, an earlier request with the same digest may have begun it: a request that is repeated after its
	// answer was lost gets the same answer.
	Reloaded Outcome = "reloaded"
	// Current means that the request was purged without a new stamp: the pods are known to have that configuration.
	Current Outcome = "current"
	// Purged means that the request was purged without a new stamp, and that nothing proves that the pods have that
	// configuration: the workload is excluded, asks for nothing, a reload is held, or the digest is of another kind than
	// the recorded one, as where pod-reloader itself has reloaded before a request with a revision digest. It is also the answer
	// where the annotations of the workload have no space for last-reload, although the template is stamped. It is no success;
	// pod-reloader why explains it.
	Purged Outcome = "purged"
	// Stale means that nothing is known about the request: the workload has another generation, or another UID. Read it
	// again. It is also the answer where the template was stamped and another webhook has removed last-reload: the next request with the
	// same digest is then answered by Current, if the Record is kept.
	Stale Outcome = "stale"
	// Conflict means that the digest is not that of the current configuration. Read it again, and retry.
	Conflict Outcome = "conflict"
	// Unverifiable means that the webhook could not read the configuration. Retry later. Mostly, client-go has done so ten times: see Do.
	Unverifiable Outcome = "unverifiable"
	// Unseen means that the annotation was stored as it is: no webhook has handled the write, or it tracks no object of the workload or
	// could not check it, and the write has a warning. Repeat that one once the annotation is gone: the same value again is ignored.
	Unseen Outcome = "unseen"
	// Failed means that the write itself failed, or that its answer is missing, also where the context has ended: then the request may
	// have been handled, and can be repeated. The error satisfies apierrors.IsConflict where another write was faster, and where another
	// webhook denied the write with that code.
	Failed Outcome = "failed"
)

// Result is the Outcome with what is known about it.
type Result struct {
	Outcome Outcome
	// LastReload explains the reload; set if Reloaded.
	LastReload LastReload
	// Generation of the workload after the write; 0 if there is no answer, or if the kind has no generations.
	Generation int64
}

// Patcher is what a poke needs of a client; every controller-runtime client is one.
type Patcher interface {
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// Do asks for the reload of a workload. It costs one PATCH of metadata; the answer is metadata too.
//
// If the webhook could not read the configuration, it answers 503 with Retry-After: client-go repeats the PATCH after a second, up to ten
// times, and Do returns the last answer. A context that ends before makes the outcome Failed, with the error of the context alone. Give it
// a minute, or give the client a transport that removes Retry-After.
//
// The error is set for the outcomes Conflict, Unverifiable and Failed. For Conflict it satisfies
// apierrors.IsConflict, so that retry.RetryOnConflict around reading, hashing and Do is all a client has to write.
func Do(ctx context.Context, c Patcher, r Request, opts ...client.PatchOption) (Result, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(r.GroupVersionKind)
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	err := c.Patch(ctx, obj, r.patch(), opts...)
	if err != nil {
		return Result{Outcome: classify(err)}, fmt.Errorf("request a reload of %s %s/%s: %w", r.Kind, r.Namespace, r.Name, err)
	}
	return Judge(obj, r), nil
}

// patch returns the patch that sets the dummy annotation: a JSON merge patch, for which the workload needs no annotations, or a JSON patch.
func (r Request) patch() client.Patch {
	key, dummy := r.keys().ConfigHash, Dummy(r.Digest, r.Generation)
	if r.Further == nil {
		body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: dummy}}})
		return client.RawPatch(types.MergePatchType, body)
	}
	request := jsonpatch.NewOperation("add", annotationField(key), dummy)
	body, _ := json.Marshal(append(slices.Clone(r.Further), request))
	return client.RawPatch(types.JSONPatchType, body)
}

func (r Request) keys() Keys {
	return cmp.Or(r.Keys, annotation.DefaultKeys())
}

// Dummy returns the value of the dummy annotation: the digest, bound to a generation unless that is 0. A request for the live
// state always is: the webhook rejects an unbound one, and a kind without generations has 0.
func Dummy(given string, generation int64) string {
	if generation == 0 && given != AnyCurrent {
		return given
	}
	return digest.Bind(given, generation)
}

// Judge reads from the workload's metadata, as the answer to the write returned it, what became of a request.
func Judge(answer metav1.Object, r Request) Result {
	result := r.judge(answer)
	result.Generation = answer.GetGeneration()
	return result
}

func (r Request) judge(answer metav1.Object) Result {
	annotations, keys := answer.GetAnnotations(), r.keys()
	if annotations[keys.ConfigHash] == Dummy(r.Digest, r.Generation) {
		return Result{Outcome: Unseen}
	}
	if r.isOfAnother(answer) {
		return Result{Outcome: Stale}
	}
	// What cannot be read is empty, and shows nothing.
	rec, _ := record.Parse(annotations[keys.ConfigRecord])
	last, err := record.ParseLastReload(annotations[keys.LastReload])
	proven := err == nil && (r.provenBy(last) || r.broughtBy(annotations[keys.LastReload]))
	switch {
	case proven && r.reloadedBy(last, rec, answer.GetGeneration()):
		return Result{Outcome: Reloaded, LastReload: last}
	case r.Generation != 0 && answer.GetGeneration() != r.Generation:
		return Result{Outcome: Stale}
	case r.recordedBy(rec, proven, last.Hash):
		return Result{Outcome: Current}
	default:
		return Result{Outcome: Purged}
	}
}

// isOfAnother reports whether the request was made for another workload of the name, or, as one for the live state always is that names no
// generation, for a kind without generations.
func (r Request) isOfAnother(answer metav1.Object) bool {
	return r.UID != "" && answer.GetUID() != r.UID || r.Digest == AnyCurrent && r.Generation == 0 && answer.GetGeneration() != 0
}

// provenBy reports whether a reload was made with the digest.
func (r Request) provenBy(last LastReload) bool {
	return r.Digest == AnyCurrent || last.Hash == r.Digest || last.Digest == r.Digest
}

// reloadedBy reports whether a reload that the digest has proven is the answer to the request. Without a Generation an earlier one is,
// unless another content was adopted since.
func (r Request) reloadedBy(last LastReload, rec record.Record, answered int64) bool {
	if r.Generation == 0 {
		return rec.Stamped() || !rec.BelongsTo(last.Hash)
	}
	return last.Generation == r.Generation && answered != r.Generation
}

// broughtBy reports whether a last-reload came with the request, which was stored only beside another one, or beside none. The reload is then the
// one that was asked for, also where the webhook was called twice and has read another digest the second time.
func (r Request) broughtBy(text string) bool {
	tested := slices.IndexFunc(r.Further, func(o jsonpatch.Operation) bool {
		return o.Operation == "test" && o.Path == annotationField(r.keys().LastReload)
	})
	return tested >= 0 && r.Further[tested].Value != any(text)
}

// annotationField is the JSON pointer to an annotation.
func annotationField(key string) string {
	return "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
}

// recordedBy reports whether a Record says that the pods have the configuration of the digest: by its Entries, by the hash that
// it belongs to, or because it belongs to the hash of a reload that the digest has proven. An item that was adopted since may have another
// content than the hash is over.
func (r Request) recordedBy(rec record.Record, proven bool, reloaded string) bool {
	if rec.Empty() {
		return false
	}
	compared := rec
	if r.Refs != nil {
		compared = rec.Only(r.Refs)
	}
	hash, _ := compared.ConfigHash()
	return hash == r.Digest || rec.Stamped() && (rec.BelongsTo(r.Digest) || proven && rec.BelongsTo(reloaded))
}

// classify distinguishes the rejections of the webhook from every other failure.
func classify(err error) Outcome {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Failed
	}
	switch {
	case apierrors.IsConflict(err) && apierrors.HasStatusCause(err, digest.Mismatch):
		return Conflict
	case apierrors.HasStatusCause(err, digest.Unverifiable):
		return Unverifiable
	default:
		return Failed
	}
}
