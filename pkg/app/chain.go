package app

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// buildChain builds the state of custom resources. Without a structured configuration there can be none.
func (b *builder) buildChain() (*chain.Chain, error) {
	o := chain.Options{
		Config: b.store, Ring: b.keys.Ring, RefreshKeys: b.keys.Refresh,
		Namespaces: b.options.Selection.Scope.Namespaces, Without: b.options.Selection.Unhandled(),
		Annotation: b.options.Selection.Keys.Checksum, FieldOwner: referentOwner(b.options.Namespace, b.options.Installation),
		Publishes: b.publishes, ReadRefused: func(key referent.Key) { b.permissions.Refused(key) }, Now: b.host.Now, Log: b.log.WithName("chain"),
	}
	if b.options.Selection.Configuration.IsZero() {
		return chain.New(o), nil
	}
	client, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return nil, fmt.Errorf("make a client for custom resources: %w", err)
	}
	o.Client = client
	c := chain.New(o)
	if err := c.Register(b.registry); err != nil {
		return nil, fmt.Errorf("register the metrics of custom resources: %w", err)
	}
	b.store.OnEvent(c.ConfigChanged)
	b.keys.OnChange(c.KeysChanged)
	return c, nil
}

// publishes reports whether the digests of custom resources in a namespace are written: where it is in scope. An object without
// namespace is in scope of each installation.
func (b *builder) publishes(namespace string) bool {
	selection := b.options.Selection.Scope
	if namespace == "" {
		return true
	}
	if !selection.SelectsNamespaces() {
		return selection.Namespace(namespace, nil)
	}
	labels, known := b.namespaces.Labels(namespace)
	return known && selection.Namespace(namespace, labels)
}

// reportUnpublished creates an Event on a custom resource whose digest cannot be written.
func reportUnpublished(recorder events.EventRecorder) func(chain.Unpublished) {
	return func(u chain.Unpublished) {
		text := "cannot publish the digest; pod-reloader retries. " + u.Remedy
		if u.More {
			text += ". Further objects of this namespace have no Event; the metric pod_reloader_referent_unpublished counts them"
		}
		note := event.Note(text + ": " + u.Err.Error())
		recorder.Eventf(u.Object, nil, corev1.EventTypeWarning, chain.EventPublishFailed, event.Action("Publish", note), "%s", note)
	}
}

// reportIgnored creates an Event on a custom resource with references that are ignored. That on an object without namespace would need a
// permission in the namespace default, which installations without publish: true do not have: it is in the log alone.
func reportIgnored(recorder events.EventRecorder) func(*unstructured.Unstructured, string) {
	return func(object *unstructured.Unstructured, problems string) {
		if object.GetNamespace() == "" {
			return
		}
		note := event.Note("references of this object are ignored, so that no workload restarts because of them: " + problems)
		recorder.Eventf(object, nil, corev1.EventTypeWarning, chain.EventReferenceIgnored, event.Action("Follow", note), "%s", note)
	}
}

// referentOwner is the field manager of published digests. No two installations have the same.
func referentOwner(namespace, installation string) string {
	owner := namespace + "/" + installation + "-referents"
	if len(owner) <= validation.FieldManagerMaxLength {
		return owner
	}
	sum := sha256.Sum256([]byte(owner))
	return fmt.Sprintf("%x-referents", sum[:16])
}
