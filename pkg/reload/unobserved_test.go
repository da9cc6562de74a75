package reload

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
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
func TestWhatIsNotObservedIsRead(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := reloadtest.Ring(t, "a")
	newest, _ := ring.Newest()
	there := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	for name, tc := range map[string]struct {
		store  reloadtest.Store
		writes int
		again  bool
	}{
		"it is still absent":  {store: reloadtest.Store{States: map[reference.Ref]digest.State{app: {Absent: true}}}},
		"it has been created": {store: reloadtest.Store{States: map[reference.Ref]digest.State{app: there}}, writes: 1, again: true},
		"it cannot be read":   {store: reloadtest.Store{Err: errors.New("forbidden")}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &refusing{}
			l := newLoop(cluster{
				client: w, events: &reloadtest.Outbox{}, Dependencies: Dependencies{Store: &tc.store, Keys: &reloadtest.Keys{Present: ring}},
			}, Options{Webhook: true})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: reloadtest.View(t)}
			s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=-"}
			result := l.actions.Close(t.Context(), l.reconcile(t.Context(), s))
			assert.Equal(t, 1, tc.store.Reads)
			assert.Equal(t, tc.writes, w.writes)
			assert.Equal(t, tc.again, result.RequeueAfter > 0, "tried again")
		})
	}
}
