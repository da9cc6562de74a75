package tracking

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// What waits for something else is looked at for an event later, and not never.
func TestEventOfAWorkloadThatWaitsQueuesItForLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, q := leading(t, Options{})
		defer q.ShutDown()
		app, key := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, workload.Key{Namespace: "shop", Name: "web"}
		l.tracking.index.SetRefs(key, []reference.Ref{app})
		change := func() {
			l.tracking.ConfigChanged(configstate.Event{Namespace: key.Namespace, Ref: app, Received: time.Now()})
		}
		change()
		q.Get()
		q.Done(key)
		l.state.Changes.BeginAttempt(key)
		l.state.Changes.WaitForOther(key, 5*time.Second)
		change()
		assert.Zero(t, q.Len())
		<-time.After(5*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 1, q.Len())
	})
}

// The index has a Job that was running at its last change. What is cached of it may be newer, or gone.
func TestEventOfAJobThatHasFinishedQueuesNothing(t *testing.T) {
	t.Parallel()
	jobs, deployments := workload.Job(), workload.Deployment()
	metadata := map[string]any{"namespace": "shop", "name": "web"}
	complete := map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	for name, tc := range map[string]struct {
		kind    workload.Kind
		cached  []workload.Summary
		unknown bool
		queued  bool
	}{
		"the Job runs":                     {kind: jobs, cached: []workload.Summary{summaryOf(jobs, map[string]any{"metadata": metadata})}, queued: true},
		"the Job has finished":             {kind: jobs, cached: []workload.Summary{summaryOf(jobs, map[string]any{"metadata": metadata, "status": complete})}},
		"the Job is gone":                  {kind: jobs, queued: true},
		"the kind is not watched any more": {kind: jobs, unknown: true, queued: true},
		"a kind without a finish":          {kind: deployments, cached: []workload.Summary{summaryOf(deployments, map[string]any{"metadata": metadata, "status": complete})}, queued: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, q := leading(t, Options{Ignores: func(s workload.Summary, _ bool) bool { return s.Finished() }})
			app, key := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, workload.Key{Kind: tc.kind.ID(), Namespace: "shop", Name: "web"}
			if !tc.unknown {
				l.tracking.watches.add(&watched{kind: tc.kind, workloads: workloadsOf(tc.cached)})
			}
			l.tracking.index.SetRefs(key, []reference.Ref{app})
			l.tracking.ConfigChanged(configstate.Event{Namespace: key.Namespace, Ref: app, Received: time.Now()})
			assert.Equal(t, tc.queued, q.Len() == 1)
		})
	}
}

// A kind can be left while all are read again.
func TestRereadGoesOnAfterAKindThatIsLeft(t *testing.T) {
	t.Parallel()
	l, q := leading(t, Options{})
	web := deployment(workload.Deployment(), "web")
	left := workload.Key{Kind: "a.example.com/v1/A", Namespace: "shop", Name: "a"}
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	l.tracking.watches.add(&watched{kind: web.Kind, workloads: workloadsOf{web}})
	l.tracking.index.SetRefs(left, []reference.Ref{app})
	l.tracking.index.SetRefs(web.Key(), []reference.Ref{{Kind: reference.ConfigMap, Name: "former"}})
	require.Equal(t, []workload.Key{left, web.Key()}, l.tracking.index.All())
	l.tracking.Reindex()
	assert.ElementsMatch(t, []workload.Key{left, web.Key()}, l.tracking.index.Trackers("shop", app))
	assert.Equal(t, 2, q.Len())
}
