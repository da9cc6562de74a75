package reload

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// denying is an API server with workloads that track configmap/app. A policy denies each write of them but of one, a moment later. It
// runs in a bubble of synctest.
type denying struct {
	client.Client
	reloadtest.Store

	healthy   workload.Key
	workloads map[string]workload.Summary

	mu sync.Mutex
	// denied counts the writes of each workload, reloaded has when that of the healthy one came.
	denied   map[string]int
	reloaded time.Time
	events   int
}

func (d *denying) Run(ctx context.Context) { <-ctx.Done() }

func (d *denying) Get(_, name string) (workload.Summary, bool) {
	s, ok := d.workloads[name]
	return s, ok
}

func (d *denying) Put(outbox.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events++
}

func (d *denying) ReadIfChanged(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return d.States, nil
}

// Patch takes as long as a policy and the other webhooks may.
func (d *denying) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	<-time.After(50 * time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if obj.GetName() == d.healthy.Name {
		if d.reloaded.IsZero() {
			d.reloaded = time.Now()
		}
		obj.SetGeneration(3)
		return nil
	}
	d.denied[obj.GetName()]++
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "denied by a policy",
	}}
}

// due returns a Deployment whose reload is due.
func (d *denying) due(t *testing.T, kind workload.Kind, keyID digest.KeyID, name string) workload.Summary {
	t.Helper()
	keys := reloadtest.Reader().Keys
	s := reloadtest.Summary(kind, map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": name, "resourceVersion": "5", "generation": int64(3), "annotations": map[string]any{
			annotation.DefaultPrefix + "configmaps": app.Name,
			keys.ConfigRecord:                       "v1:abc:" + string(keyID) + ":configmap/app=0123456789abcdef",
		}},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{keys.ConfigHash: "abc"}}, "spec": map[string]any{},
		}},
	})
	d.workloads[name] = s
	return s
}

// work treats workloads with all the workers of a controller.
func (d *denying) work(t *testing.T, l *loop, pq priorityqueue.PriorityQueue[workload.Key], workers int) {
	t.Helper()
	for range workers {
		go func() {
			for {
				key, _, ended := pq.GetWithPriority()
				if ended {
					return
				}
				result, err := l.Reconcile(t.Context(), key)
				assert.NoError(t, err)
				pq.Done(key)
				if result.RequeueAfter > 0 {
					pq.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, key)
				}
			}
		}()
	}
}

// There are more workloads whose writes are denied than workers, in the namespace of the other one.
func TestWorkloadsWhoseWritesAreDeniedHoldUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers, poisoned = 16 + action.MaxWrites, 300
		kind, ring := workload.Deployment(), digesttest.Ring(t, "a")
		newest, _ := ring.Newest()
		d := &denying{workloads: map[string]workload.Summary{}, denied: map[string]int{}}
		d.States = map[reference.Ref]digest.State{app: digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "2", ring)}
		for n := range poisoned {
			d.due(t, kind, newest.ID, "poisoned-"+strconv.Itoa(n))
		}
		var created func(before, after workload.Summary, listed string)
		opts := Options{Reader: reloadtest.Reader(), Webhook: true, Settle: time.Second, SettleMax: 5 * time.Second}
		l := newLoop(loopDependencies{client: d, Dependencies: Dependencies{
			Events: d, Store: d, Keys: &reloadtest.Keys{Present: ring},
			Workloads: func(_ workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
				created = changed
				for _, s := range d.workloads {
					changed(workload.Summary{}, s, "")
				}
				return d
			},
		}}, opts)
		pq := priorityqueue.New[workload.Key]("test")
		defer pq.ShutDown()
		var to workqueue.TypedRateLimitingInterface[workload.Key] = pq
		require.NoError(t, l.queue.Source(func(context.Context) {}).Start(t.Context(), to))
		l.leads.Begin(time.Now())
		l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(kind)))
		go l.queue.Raise(t.Context())
		d.work(t, l, pq, workers)
		<-time.After(time.Minute)
		synctest.Wait()
		require.Len(t, d.denied, poisoned, "each is tried")

		healthy := d.due(t, kind, newest.ID, "healthy")
		d.healthy = healthy.Key()
		begin := time.Now()
		l.state.Changes.EventArrived(healthy.Key(), begin) // it settles as the others do
		created(workload.Summary{}, healthy, "")
		l.tracking.ConfigChanged(configstate.Event{Namespace: "shop", Ref: app, Type: configstate.Modified, Received: begin})
		<-time.After(time.Minute)
		synctest.Wait()
		require.False(t, d.reloaded.IsZero(), "it is reloaded")
		assert.Less(t, d.reloaded.Sub(begin), 1500*time.Millisecond, "settle time included: the first attempt goes before the repeated ones")
	})
}
