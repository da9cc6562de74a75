package configstate

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// watcher follows the metadata of one kind in one namespace, or in all of them.
type watcher struct {
	kind      reference.Kind
	namespace string // empty: all
	client    *client
	keep      wire.Keep
	log       logr.Logger
	// What it delivers goes to these.
	metadata *metadataCache
	statuses *podStatusCache
	progress *syncProgress

	// delivering is held from when its objects change in the metadata cache until the handlers have returned: the last event of an object
	// says whether it exists, although reads deliver objects of a watch, too. While it is held, the locks of the caches may be taken.
	delivering sync.Mutex
}

// watches are those that a Store has, by what they follow: it is a map that does not change after New.
type watches map[scopeKey]*watcher

// of returns the watch of a kind in a namespace; nil where there is none.
func (x watches) of(kind reference.Kind, namespace string) *watcher {
	if w, ok := x[scopeKey{kind, namespace}]; ok {
		return w
	}
	return x[scopeKey{kind: kind}]
}

// run watches until the context ends. A refusal or an outage is logged once and retried until then.
func (w *watcher) run(ctx context.Context) {
	if w.kind == podStatusKind {
		w.runPodStatuses(ctx)
		return
	}
	loop := listwatch.Loop[*metav1.PartialObjectMetadata]{
		Name: "configstate", Kind: w.kind.Resource(), What: "config objects", Log: w.log,
		List: w.list, Watch: w.watch, Sink: w, Failed: w.failed,
	}
	loop.Run(ctx)
}

// failed records that the objects could not be listed. A cluster without the Secrets Store CSI driver has no such kinds, and so no
// pod statuses; the driver may be installed later, and removed again.
func (w *watcher) failed(err error, refused bool) {
	unknown := apierrors.IsNotFound(err)
	if unknown && w.kind == podStatusKind {
		w.statuses.list(w, newPodStatuses())
		return
	}
	w.progress.attempted(w, refused || unknown && w.kind == reference.SecretProviderClass)
}

// list serves API servers without streaming lists. The limit is the reflector's, and the server's watch cache may ignore it:
// the response is read item by item either way.
func (w *watcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := w.client.list(ctx, w.kind, w.namespace, options, w.keep)
	if err != nil {
		return nil, err
	}
	result := &metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{ResourceVersion: list.ResourceVersion, Continue: list.Continue},
		Items:    make([]metav1.PartialObjectMetadata, len(list.Items)),
	}
	for i, meta := range list.Items {
		fill(&result.Items[i], meta)
	}
	return result, nil
}

// watch opens a watch.
func (w *watcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	body, err := w.client.watch(ctx, w.kind, w.namespace, options)
	if err != nil {
		return nil, err
	}
	var buffer wire.Buffer
	return listwatch.Stream(body, func() (watch.EventType, runtime.Object, error) {
		event, err := wire.ReadEvent(body, &buffer, w.keep)
		if err != nil {
			return "", nil, err
		}
		if event.Status != nil {
			return event.Type, event.Status, nil
		}
		object := &metav1.PartialObjectMetadata{}
		fill(object, event.Meta)
		if event.Type == watch.Bookmark && event.Meta.InitialEnd { // a user can have given an object that annotation, too
			object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		}
		return event.Type, object, nil
	}, w.log.V(1)), nil
}

func fill(object *metav1.PartialObjectMetadata, meta wire.Meta) {
	object.Namespace, object.Name = meta.Namespace, meta.Name
	object.UID, object.ResourceVersion = types.UID(meta.UID), meta.ResourceVersion
	object.Annotations, object.Labels = meta.Annotations, meta.Labels
}

// Put takes an object that comes or changes.
func (w *watcher) Put(meta *metav1.PartialObjectMetadata) { w.metadata.put(w, meta, origin{}) }

// Remove takes an object that is gone.
func (w *watcher) Remove(meta *metav1.PartialObjectMetadata) { w.metadata.remove(w, meta, origin{}) }

// Replace takes a listing.
func (w *watcher) Replace(metas []*metav1.PartialObjectMetadata, _ string) {
	w.metadata.replace(w, metas)
}
