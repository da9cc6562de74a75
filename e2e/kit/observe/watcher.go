package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Watcher watches the workloads of a namespace, or of all. Its methods may be called from any goroutine.
type Watcher struct {
	kinds     []Kind
	namespace string
	objects   dynamic.Interface
	metadata  metadata.Interface
	cancel    context.CancelFunc
	running   sync.WaitGroup
	// connection is that of this watcher alone.
	connection *http.Client

	mutex     sync.Mutex
	histories map[Workload]*history
	// changed is closed and replaced whenever something was seen.
	changed chan struct{}
	// failure is why watching stopped for good.
	failure error
}

// Start watches the built-in kinds and further ones in a namespace ("" is all of them) and returns when the objects that
// are there were seen. It runs until Stop or until ctx ends.
func Start(ctx context.Context, config *rest.Config, namespace string, further ...Kind) (*Watcher, error) {
	connection, err := ownConnection(config)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	light, err := metadata.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{
		kinds:     append(append(Builtin(), KindNamed(replicaSet)), further...),
		namespace: namespace, objects: objects, metadata: light, cancel: cancel, connection: connection,
		histories: map[Workload]*history{}, changed: make(chan struct{}),
	}
	for _, kind := range w.kinds {
		version, err := w.list(ctx, kind)
		if err != nil {
			w.Stop()
			return nil, err
		}
		w.running.Go(func() { w.follow(ctx, kind, version) })
	}
	return w, nil
}

// ownConnection returns a client with a connection of its own. Clients of one configuration share one otherwise, and an
// API server serves 100 streams on each: beside some dozen watchers, the connection of all tests would always be full.
// A server may still count a stream that the client has seen end. It then resets the next one, with PROTOCOL_ERROR.
func ownConnection(config *rest.Config) (*http.Client, error) {
	config = rest.CopyConfig(config)
	// Configurations with a function for the proxy cannot be compared, so that client-go shares no transport of theirs.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return rest.HTTPClientFor(config)
}

// New starts a watcher for a test and stops it with the test. At the end it fails the test if versions went unseen,
// since then the counts mean nothing.
func New(t testing.TB, config *rest.Config, namespace string, further ...Kind) *Watcher {
	t.Helper()
	w, err := Start(context.WithoutCancel(t.Context()), config, namespace, further...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Stop()
		if err := w.err(); err != nil {
			t.Errorf("the observer saw not everything: %v", err)
		}
	})
	return w
}

// Stop ends the watching; what was seen can still be asked for.
func (w *Watcher) Stop() {
	w.cancel()
	w.running.Wait()
	w.connection.CloseIdleConnections()
}

// Changes are the template changes of a workload since it was first seen, or since it was last created.
func (w *Watcher) Changes(of Workload) []Change {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if h := w.histories[of]; h != nil {
		return slices.Clone(h.changes)
	}
	return nil
}

// Total is the number of template changes of all workloads in a namespace; "" counts all. ReplicaSets do not count.
func (w *Watcher) Total(namespace string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	total := 0
	for workload, h := range w.histories {
		if workload.Kind != replicaSet && (namespace == "" || workload.Namespace == namespace) {
			total += len(h.changes)
		}
	}
	return total
}

// Kinds are those of which a workload was seen.
func (w *Watcher) Kinds() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	kinds := map[string]bool{}
	for workload := range w.histories {
		kinds[workload.Kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// Object is the last version that was seen of a workload, not to be changed; nil if it does not exist.
func (w *Watcher) Object(of Workload) *unstructured.Unstructured {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if h := w.histories[of]; h != nil && !h.deleted {
		return h.current
	}
	return nil
}

// Versions is how many versions of a workload were seen since it was created, status updates included.
func (w *Watcher) Versions(of Workload) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if h := w.histories[of]; h != nil {
		return h.versions
	}
	return 0
}

// Creations is how many workloads of this name were seen, one after the other: the changes are those of the last one.
func (w *Watcher) Creations(of Workload) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if h := w.histories[of]; h != nil {
		return h.creations
	}
	return 0
}

// Unseen is how many generations of a workload were never seen. It is 0 as long as the API server runs through: only when
// it lost its history, as after a restart, must the watcher list anew and may miss what was between.
func (w *Watcher) Unseen(of Workload) int64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if h := w.histories[of]; h != nil {
		return h.unseen
	}
	return 0
}

// ReplicaSets is how many ReplicaSets a Deployment has had since the watch began: one for each distinct template that
// its controller rolled out. Those it has no more count too.
func (w *Watcher) ReplicaSets(deployment Workload) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	count := 0
	for workload, h := range w.histories {
		if workload.Kind != replicaSet || workload.Namespace != deployment.Namespace {
			continue
		}
		for _, owner := range h.current.GetOwnerReferences() {
			if owner.Kind == deployment.Kind && owner.Name == deployment.Name {
				count++
			}
		}
	}
	return count
}

// AwaitTemplateChanges waits until a workload has had n template changes or more and returns them. The error has those
// that were seen.
func (w *Watcher) AwaitTemplateChanges(ctx context.Context, of Workload, n int) ([]Change, error) {
	err := w.Await(ctx, fmt.Sprintf("%d template changes of %s", n, of), func() error {
		changes := w.Changes(of)
		if len(changes) < n {
			return fmt.Errorf("%d so far: %v", len(changes), changes)
		}
		return nil
	})
	return w.Changes(of), err
}

// Await waits until a condition on what was seen holds: it is asked again whenever something new is seen and returns nil
// when it holds.
func (w *Watcher) Await(ctx context.Context, what string, holds func() error) error {
	for {
		w.mutex.Lock()
		news := w.changed
		w.mutex.Unlock()
		missing := holds()
		if missing == nil {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("await %s: %w (last: %w)", what, ctx.Err(), missing), w.err())
		}
	}
}

func (w *Watcher) err() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.failure
}

// take records a version of an object; gone says that it is the last one.
func (w *Watcher) take(kind Kind, object *unstructured.Unstructured, gone bool) {
	at := time.Now()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	workload := Workload{kind.Name, object.GetNamespace(), object.GetName()}
	h := w.histories[workload]
	if h == nil {
		h = &history{kind: kind}
		w.histories[workload] = h
	}
	if gone {
		h.deleted, h.version = true, object.GetResourceVersion()
	} else if h.version != object.GetResourceVersion() {
		w.failure = cmp.Or(w.failure, h.take(object, at))
	}
	close(w.changed)
	w.changed = make(chan struct{})
}
