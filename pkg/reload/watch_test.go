package reload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A standby remembers which workloads there are, and queues them when it becomes the leader, not before: nobody would take
// out what comes and goes meanwhile.
func TestStandbyQueuesNothing(t *testing.T) {
	t.Parallel()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Key]())
	t.Cleanup(q.ShutDown)
	l := &loop{
		now: time.Now, index: newIndex(), memory: newMemory(), watches: newWatches(), recent: newRecent(0),
		opts: Options{Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}},
	}
	l.queue.Store(&queue{q})
	kind := workload.Builtin()[1]
	h := workloadHandler{l, &watched{kind: kind}}
	stays, goes := deployment(kind, "stays"), deployment(kind, "goes")
	var none workload.Summary
	h.changed(none, stays)
	h.changed(none, goes)
	h.changed(goes, none)
	l.configChanged(configstate.Event{Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}, Received: time.Now()})
	assert.Zero(t, q.Len(), "a standby")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, l.lead(ended))
	require.Equal(t, 1, q.Len(), "the leader treats what there is")
	key, _ := q.Get()
	assert.Equal(t, Key{Kind: kind.ID(), Namespace: "shop", Name: "stays"}, key)
	q.Done(key)

	h.changed(none, goes)
	assert.Equal(t, 1, q.Len(), "and what comes")

	l.addAll()
	assert.Equal(t, 2, q.Len(), "all, when the digest keys have changed")
}

// deployment is a workload that tracks configmap/app.
func deployment(kind workload.Kind, name string) workload.Summary {
	return trackingApp(kind, "shop", name, 1)
}

func trackingApp(kind workload.Kind, namespace, name string, generation int64) workload.Summary {
	return summaryOf(kind, map[string]any{"metadata": map[string]any{
		"namespace": namespace, "name": name, "generation": generation,
		"annotations": map[string]any{annotation.DefaultPrefix + "configmaps": "app"},
	}})
}

// summaryOf keeps all labels and annotations.
func summaryOf(kind workload.Kind, raw map[string]any) workload.Summary {
	all := func(string) bool { return true }
	return workload.Summary{Kind: kind, Kept: workload.Object{Kind: kind, Raw: raw}.Keep(workload.Keep{Label: all, Annotation: all})}
}

// An update that cannot change what is due queues nothing; one of another object of the same name forgets the earlier one.
func TestChangesOfWorkloads(t *testing.T) {
	t.Parallel()
	kind := workload.Builtin()[1]
	version := func(uid, status string, generation int64) workload.Summary {
		return summaryOf(kind, map[string]any{"status": status, "metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": uid, "generation": generation,
		}})
	}
	for name, tc := range map[string]struct {
		after             workload.Summary
		queued, remembers bool
	}{
		"the status changes": {version("u", "b", 1), false, true},
		"the spec changes":   {version("u", "a", 2), true, true},
		"it is created anew": {version("v", "a", 1), true, false},
		"it is deleted":      {workload.Summary{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := leading(t, &watching{})
			h := workloadHandler{l, &watched{kind: kind}}
			key := Key{Kind: kind.ID(), Namespace: "shop", Name: "web"}
			l.memory.Due(key, time.Now())
			h.changed(version("u", "a", 1), tc.after)
			_, due := l.memory.OldestDue()
			assert.Equal(t, tc.remembers, due == 1)
			assert.Equal(t, tc.queued, l.queue.Load().Len() == 1)
		})
	}
}

func TestConstantChangeQueuesAWorkloadThatSettlesOnce(t *testing.T) {
	t.Parallel()
	l := leading(t, &watching{})
	app, key := reference.Ref{Kind: reference.ConfigMap, Name: "app"}, Key{Namespace: "shop", Name: "web"}
	other := Key{Namespace: "shop", Name: "other"}
	l.index.Set(key, []reference.Ref{app})
	l.index.Set(other, []reference.Ref{app})
	now := time.Now()
	changed := configstate.Event{Namespace: "shop", Ref: app, Received: now}
	l.configChanged(changed)
	queue := l.queue.Load()
	require.Equal(t, 2, queue.Len())
	for range 2 {
		taken, _ := queue.Get()
		queue.Done(taken)
	}
	l.memory.Settles(key, now.Add(time.Second))
	l.configChanged(changed)
	require.Equal(t, 1, queue.Len(), "it is queued for the end of the settle time")
	taken, _ := queue.Get()
	assert.Equal(t, other, taken)
	assert.Equal(t, now, l.memory.Attempt(key).last, "the event counts")
}
