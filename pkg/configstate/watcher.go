package configstate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	// silence is how long a watch may say nothing. The API server sends a bookmark about every minute; a connection
	// that is silent for longer is taken for dead and opened anew where it was, which costs one request.
	silence = 150 * time.Second
	// The pause after a failure doubles from the shortest to the longest. It is short, because until it is over
	// changes go unseen, and there are only two watches a namespace.
	shortestPause, longestPause = 200 * time.Millisecond, 10 * time.Second
	// steady is how long a watch must have been at work for the next pause to be the shortest again.
	steady = time.Minute
)

// watcher follows the metadata of one kind in one namespace, or in all of them.
type watcher struct {
	kind      reference.Kind
	namespace string // empty: all
	client    *client
	store     *Store
	keep      wire.Keep
	log       logr.Logger

	// complaint is the last error that was logged, so that the same is not logged again. Only run's goroutine has it.
	complaint string
}

// run watches until the context ends. A refusal or an outage is logged once and tried again for ever.
func (w *watcher) run(ctx context.Context) {
	pause := wait.Backoff{
		Duration: shortestPause, Cap: longestPause, Steps: 8, Factor: 2, Jitter: 0.5,
	}
	reflector := cache.NewReflectorWithOptions(w, &metav1.PartialObjectMetadata{}, &sink{w}, cache.ReflectorOptions{
		Name: "configstate", TypeDescription: resources[w.kind], Backoff: &pause,
	})
	// What the reflector tells on its way is for those who look for it.
	quietCtx := klog.NewContext(ctx, w.log.V(1))
	_ = pause.DelayWithReset(clock.RealClock{}, steady).Until(ctx, true, true, func(context.Context) (bool, error) {
		err := reflector.ListAndWatchWithContext(quietCtx)
		if err != nil && ctx.Err() == nil {
			w.failed(err)
		}
		return false, nil
	})
}

// failed tells of an error when it is another one than last time.
func (w *watcher) failed(err error) {
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	w.store.attempted(w, refused)
	if err.Error() == w.complaint {
		return
	}
	w.complaint = err.Error()
	if refused {
		w.log.Error(err, "Not allowed to watch config objects: grant get, list and watch; retrying")
		return
	}
	w.log.Error(err, "Cannot watch config objects; retrying")
}

// recovered tells that a listing succeeded after an error was logged.
func (w *watcher) recovered() {
	if w.complaint != "" {
		w.complaint = ""
		w.log.Info("Watching config objects again")
	}
}

// List is for the reflector's interface; it calls ListWithContext.
func (w *watcher) List(options metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), options)
}

// Watch is for the reflector's interface; it calls WatchWithContext.
func (w *watcher) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), options)
}

// ListWithContext serves API servers without streaming lists. The limit is the reflector's, and the server's watch
// cache may ignore it: the response is read item by item either way.
func (w *watcher) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
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

// WatchWithContext opens a watch; the reflector asks for initial events where the server can stream them.
func (w *watcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	body, err := w.client.watch(ctx, w.kind, w.namespace, options)
	if err != nil && options.SendInitialEvents != nil && utilnet.IsConnectionRefused(err) {
		// The reflector would retry by itself, deaf to the end of the context. run retries better.
		return nil, errors.New(err.Error())
	}
	if err != nil {
		return nil, err
	}
	d := &decoder{body: body, keep: w.keep}
	d.silence = time.AfterFunc(silence, d.giveUp)
	return watch.NewStreamWatcherWithLogger(w.log.V(1), d,
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, "WATCH", "ClientWatchDecoding")), nil
}

// decoder turns the bytes of a watch into events.
type decoder struct {
	body    io.ReadCloser
	close   sync.Once
	silence *time.Timer
	silent  atomic.Bool
	buffer  wire.Buffer
	keep    wire.Keep
}

// Decode waits for the next event.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	event, err := wire.ReadEvent(d.body, &d.buffer, d.keep)
	if err != nil && d.silent.Load() {
		return "", nil, io.EOF // go on with a new watch from here
	}
	if err != nil {
		return "", nil, plain(err)
	}
	d.silence.Reset(silence)
	if event.Status != nil {
		return event.Type, event.Status, nil
	}
	object := &metav1.PartialObjectMetadata{}
	fill(object, event.Meta)
	if event.Meta.InitialEnd {
		object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return event.Type, object, nil
}

// plain unwraps the two errors that StreamWatcher takes for the ordinary end of a watch.
func plain(err error) error {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return end
		}
	}
	return err
}

// Close ends the watch; a Decode that waits returns.
func (d *decoder) Close() {
	d.close.Do(func() {
		d.silence.Stop()
		_ = d.body.Close()
	})
}

// giveUp ends a watch that has been silent for too long.
func (d *decoder) giveUp() {
	d.silent.Store(true)
	d.Close()
}

func fill(object *metav1.PartialObjectMetadata, meta wire.Meta) {
	object.Namespace, object.Name = meta.Namespace, meta.Name
	object.UID, object.ResourceVersion = types.UID(meta.UID), meta.ResourceVersion
	object.Annotations = meta.Annotations
}

// sink takes what the reflector learns into the Store. Its methods run on the reflector's goroutine.
type sink struct {
	*watcher
}

var _ cache.ReflectorStore = (*sink)(nil)

// Add takes in a new object.
func (s *sink) Add(object any) error { return s.put(object) }

// Update takes in a changed object.
func (s *sink) Update(object any) error { return s.put(object) }

func (s *sink) put(object any) error {
	meta, err := metaOf(object)
	if err != nil {
		return err
	}
	s.store.put(s.watcher, meta, anytime)
	return nil
}

// Delete takes in that an object is gone.
func (s *sink) Delete(object any) error {
	meta, err := metaOf(object)
	if err != nil {
		return err
	}
	s.store.remove(s.watcher, meta, anytime)
	return nil
}

// Replace takes in a listing: what is not in it is gone.
func (s *sink) Replace(objects []any, _ string) error {
	metas := make([]*metav1.PartialObjectMetadata, 0, len(objects))
	for _, object := range objects {
		meta, err := metaOf(object)
		if err != nil {
			return err
		}
		metas = append(metas, meta)
	}
	s.store.replace(s.watcher, metas)
	s.recovered()
	return nil
}

// Resync does nothing: whoever needs to look at everything again does so by itself.
func (s *sink) Resync() error { return nil }

func metaOf(object any) (*metav1.PartialObjectMetadata, error) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	meta, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, errors.New("the watch of metadata delivered something else")
	}
	return meta, nil
}
