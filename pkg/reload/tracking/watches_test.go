package tracking

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// changed reports a change of a workload as its watch does after the first listing.
type changed = func(before, after workload.Summary)

// watching has which kinds are watched, and lets a test be the API server.
type watching struct {
	attached chan changed

	mu      sync.Mutex
	watched map[string]bool
}

// follow is Options.Workloads.
func (w *watching) follow(kind workload.Kind, report func(before, after workload.Summary, listed string)) Workloads {
	return &followed{of: w, kind: kind, report: func(before, after workload.Summary) { report(before, after, "") }}
}

func (w *watching) set(kind workload.Kind, watched bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched {
		w.watched[kind.Kind] = true
	} else {
		delete(w.watched, kind.Kind)
	}
}

func (w *watching) names() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.watched)
}

type followed struct {
	of     *watching
	kind   workload.Kind
	report changed
}

func (f *followed) Run(ctx context.Context) {
	f.of.set(f.kind, true)
	f.of.attached <- f.report
	<-ctx.Done()
	f.of.set(f.kind, false)
}

func (f *followed) Get(_, name string) (workload.Summary, bool) {
	return deployment(f.kind, name), true
}

func fleet(t *testing.T, path string) workload.Kind {
	t.Helper()
	kind, err := workload.ParseKind("example.com/v1/Fleet=" + path)
	require.NoError(t, err)
	return kind
}

// leading returns a fixture that leads, with its queue.
func leading(t *testing.T, o Options) (*fixture, workqueue.TypedRateLimitingInterface[workload.Key]) {
	t.Helper()
	o.Reader = reloadtest.Reader()
	l := standby(o)
	q := reloadtest.Open(t, l.queue)
	l.leads.Begin(time.Now())
	return l, q
}

func newWatching() *watching {
	return &watching{attached: make(chan changed, 10), watched: map[string]bool{}}
}

func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	c := newWatching()
	l, q := leading(t, Options{Workloads: c.follow})
	builtin := workload.NewKinds(workload.Builtin()...)
	kinds := refresh.NewKinds(builtin)
	l.tracking.Follow(t.Context(), kinds)
	for range 4 {
		<-c.attached
	}
	assert.Equal(t, map[string]bool{"DaemonSet": true, "Deployment": true, "StatefulSet": true, "CronJob": true}, c.names(),
		"Jobs are watched only where they can be created again")

	kind := fleet(t, "spec.template")
	kinds.Set(builtin.Override(kind))
	report := <-c.attached
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	key := workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
	var none workload.Summary
	report(none, deployment(kind, "web"))
	require.Equal(t, []workload.Key{key}, l.tracking.index.Trackers("shop", app))
	l.state.Due.Add(key, time.Now())
	l.backoff.When(key, state.NeedsUser)
	taken, _ := q.Get() // it is under reconciliation when the kind goes

	kinds.Set(builtin)
	assert.NotContains(t, c.names(), "Fleet", "its watch has ended before Set returns")
	assert.Contains(t, c.names(), "Deployment", "the others stay")
	assert.Empty(t, l.tracking.index.Trackers("shop", app))
	_, due := l.state.Due.Oldest()
	assert.Zero(t, due, "nothing is remembered of its workloads")
	assert.False(t, l.backoff.Failing(key), "the failures of its workloads are forgotten")
	report(none, deployment(kind, "late"))
	report(deployment(kind, "web"), deployment(kind, "late"))
	report(deployment(kind, "web"), none)
	assert.Empty(t, l.tracking.index.All(), "an event that comes late is not listened to")

	l.state.Due.Add(taken, time.Now())
	q.Done(taken)
	again, _ := q.Get()
	require.Equal(t, key, again, "what was under treatment comes back")
	_, found := l.tracking.Get(t.Context(), again)
	assert.False(t, found, "and is found to be gone, so that it is forgotten")
}

// What is kept of a workload was read by the path to the template: none may be read by another one.
func TestTemplateThatMoves(t *testing.T) {
	t.Parallel()
	c := newWatching()
	l, _ := leading(t, Options{Workloads: c.follow})
	before, after := fleet(t, "spec.template"), fleet(t, "spec.pods")
	kinds := refresh.NewKinds(workload.NewKinds(before))
	l.tracking.Follow(t.Context(), kinds)
	old := <-c.attached
	key := workload.Key{Kind: before.ID(), Namespace: "shop", Name: "web"}
	o, found := l.tracking.Get(t.Context(), key)
	require.True(t, found, "a workload of the kind as it was is found")
	assert.Equal(t, before, o.Kind)

	kinds.Set(workload.NewKinds(after))
	report := <-c.attached
	var none workload.Summary
	old(none, deployment(before, "web"))
	assert.Empty(t, l.tracking.index.All(), "the old watch is not listened to")
	report(none, deployment(after, "web"))
	assert.Len(t, l.tracking.index.All(), 1, "the new one is")
	o, found = l.tracking.Get(t.Context(), key)
	require.True(t, found, "a workload of the kind as it is now is found")
	assert.Equal(t, after, o.Kind)
}
