package reload

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// refusing counts the patches that it refuses, and keeps the last one.
type refusing struct {
	client.Client
	writes int
	body   string
}

func (w *refusing) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	w.writes++
	body, _ := patch.Data(obj)
	w.body = string(body)
	return errors.New("refused")
}

// What may not be watched is read before anything is decided: nothing known of it is no change of it.
func TestUnwatchedObjectIsReadBeforeDecision(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	there := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	for name, tc := range map[string]struct {
		store  reloadtest.Store
		writes int
		again  bool
	}{
		"the object is still absent":  {store: reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}}},
		"the object has been created": {store: reloadtest.Store{States: map[reference.Ref]digest.State{app: there}}, writes: 1, again: true},
		"the object cannot be read":   {store: reloadtest.Store{Err: errors.New("forbidden")}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &refusing{}
			l := newLoop(loopDependencies{
				client: w, Dependencies: Dependencies{Events: &reloadtest.Outbox{}, Store: &tc.store, Keys: &reloadtest.Keys{Present: ring}},
			}, Options{Webhook: true})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t)}
			s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=-"}
			result := l.actions.Close(t.Context(), l.decide(t.Context(), s))
			assert.Equal(t, 1, tc.store.Reads)
			assert.Equal(t, tc.writes, w.writes)
			assert.Equal(t, tc.again, result.RequeueAfter > 0, "tried again")
		})
	}
}

// Where a watch is refused, or has not listed its objects yet, no event says later that an object is not there.
func TestMissingObjectThatIsNotObservedIsReported(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	out, store := &reloadtest.Outbox{}, &reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}}
	l := newLoop(loopDependencies{
		client: &refusing{}, Dependencies: Dependencies{Events: out, Store: store, Keys: &reloadtest.Keys{Present: ring}},
	}, Options{Webhook: true})
	s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t)}
	s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=-"}
	for range 2 {
		l.actions.Close(t.Context(), l.decide(t.Context(), s))
		assert.Equal(t, []string{missing([]reference.Ref{app}, 0)}, out.Notes(), "once")
	}
}

// The API server forgets Events after an hour.
func TestProblemThatPersistsIsReportedAgain(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	out, now := &reloadtest.Outbox{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	web := reloadtest.Summary(workload.Deployment(), map[string]any{
		"metadata": map[string]any{
			"namespace": "shop", "name": "web", "annotations": map[string]any{
				annotation.DefaultPrefix + "configmaps": "app,a_b", annotation.DefaultPrefix + "config-record": "v1:-:" + string(newest.ID) + ":configmap/app=-",
			},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
	})
	with := loopDependencies{Dependencies: Dependencies{
		Events: out,
		Store:  &reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}},
		Keys:   &reloadtest.Keys{Present: ring},
		Workloads: func(_ workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads {
			changed(workload.Summary{}, web, "")
			return single{web}
		},
	}}
	l, _ := leading(t, with, Options{Now: func() time.Time { return now }})
	l.tracking.Follow(t.Context(), refresh.NewKinds(workload.NewKinds(web.Kind)))
	look := func() time.Duration {
		result, err := l.Reconcile(t.Context(), web.Key())
		require.NoError(t, err)
		return result.RequeueAfter
	}
	require.Equal(t, time.Hour, look(), "nothing else has it looked at again")
	require.Len(t, out.Messages, 2, "InvalidAnnotation and ConfigMissing")
	now = now.Add(20 * time.Minute)
	assert.Equal(t, 40*time.Minute, look(), "by any event")
	require.Len(t, out.Messages, 2)
	now = now.Add(40 * time.Minute)
	assert.Equal(t, time.Hour, look())
	assert.Len(t, out.Messages, 4)
}
