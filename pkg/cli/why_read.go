package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// ring reads the digest keys. Without them the Report has less to say, so that is no error.
func (f *whyFlags) ring(ctx context.Context, c client.Reader) (digest.Ring, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: f.own, Name: f.key}, secret); err != nil {
		return digest.Ring{}, fmt.Errorf("the digest key cannot be read: %w", err)
	}
	ring, err := digest.NewRing(secret.Data)
	if err != nil {
		return digest.Ring{}, fmt.Errorf("the digest key in Secret %s/%s is unusable: %w; %w", f.own, f.key, err, errUnusable)
	}
	return ring, nil
}

// errUnusable marks a digest key that is no key.
var errUnusable = errors.New("correct or remove the invalid key, and delete the Secret only if no key is valid")

// readWorkload reads a workload. The account of an installation may list Jobs and not get them.
func readWorkload(ctx context.Context, c client.Reader, kind workload.Kind, name types.NamespacedName) (workload.Object, error) {
	u := kind.NewObject()
	err := c.Get(ctx, name, u)
	if apierrors.IsForbidden(err) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		switch failed := c.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{"metadata.name": name.Name}); {
		case failed != nil: // the permission to get it is the smaller one
		case len(list.Items) == 0:
			err = absent(kind, name)
		default:
			u.Object, err = list.Items[0].Object, nil
			u.SetGroupVersionKind(kind.GroupVersionKind)
		}
	}
	if err = missing(kind, name, err); err != nil {
		return workload.Object{}, fmt.Errorf("read the workload: %w", err)
	}
	return workload.Object{Kind: kind, Raw: u.Object}, nil
}

// missing returns the failure to read a workload. It says whether the workload does not exist, or its kind.
func missing(kind workload.Kind, name types.NamespacedName, err error) error {
	switch {
	case apianswer.NotFound(err):
		return absent(kind, name)
	case meta.IsNoMatchError(err):
		return unserved(kind)
	default:
		return err
	}
}

// unserved reports a kind that the cluster does not have, or has in other versions alone.
func unserved(kind workload.Kind) error {
	return fmt.Errorf("the cluster does not serve %s in version %s", kind.GroupKind(), kind.Version)
}

// absent reports a workload that does not exist. It names the namespace, which may be that of the kubeconfig's context.
func absent(kind workload.Kind, name types.NamespacedName) error {
	return fmt.Errorf("%s %s does not exist; name another namespace with -n", kind.Kind, name)
}

// noKey says why the Secret has no usable digest key, and what to do; empty if it may have one. Replicas keep their keys in memory.
func (f *whyFlags) noKey(err error) string {
	switch {
	case apianswer.NotFound(err):
		return fmt.Sprintf("the Secret %s/%s does not exist; pod-reloader creates it, with the keys in its memory where it has run before: "+
			"check that it runs, or name the Secret with --installation-namespace and --digest-key-secret", f.own, f.key)
	case errors.Is(err, errUnusable):
		return fmt.Sprintf("the Secret %s/%s is not usable; the replicas that run go on with the keys in their memory, and one that starts waits "+
			"until the Secret is corrected", f.own, f.key)
	default:
		return ""
	}
}

// readState reads one config object.
type readState = func(context.Context, objectKey) (digest.State, error)

// stateReader returns what reads a config object: its content where there is a digest key, else its metadata.
func (f *whyFlags) stateReader(config *rest.Config, c client.Reader, ring digest.Ring) (readState, error) {
	if ring.Empty() {
		return func(ctx context.Context, o objectKey) (digest.State, error) { return readVersion(ctx, c, o) }, nil
	}
	store, err := configstate.New(configstate.Options{Config: config, Ring: func() digest.Ring { return ring }, Log: logr.Discard()})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, o objectKey) (digest.State, error) {
		states, err := store.ReadLive(ctx, o.namespace, []reference.Ref{o.ref})
		return states[o.ref], err
	}, nil
}

// readVersion reads whether a config object is there, and in which version.
func readVersion(ctx context.Context, c client.Reader, o objectKey) (digest.State, error) {
	if o.ref.Kind == reference.SecretProviderClass {
		return digest.State{}, errors.New("its content is compared with the digest key only")
	}
	meta := &metav1.PartialObjectMetadata{}
	gvk, _ := o.ref.Kind.GroupVersionKind()
	meta.SetGroupVersionKind(gvk)
	err := c.Get(ctx, types.NamespacedName{Namespace: o.namespace, Name: o.ref.Name}, meta)
	if apianswer.NotFound(err) {
		return digest.State{Absent: true}, nil
	}
	return digest.State{UID: string(meta.UID), ResourceVersion: meta.ResourceVersion}, err
}

// readStates reads the config objects one by one, since one that is forbidden shall not hide the others.
func readStates(ctx context.Context, refs []reference.Ref, read readRef) (map[reference.Ref]digest.State, map[reference.Ref]error, error) {
	states, unread := map[reference.Ref]digest.State{}, map[reference.Ref]error{}
	for _, ref := range refs {
		state, err := read(ref)
		switch {
		case err == nil:
			states[ref] = state
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		default:
			unread[ref] = err
		}
	}
	return states, unread, nil
}
