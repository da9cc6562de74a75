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
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// blind is a Store that may watch nothing, but read.
type blind struct {
	Store
	states map[reference.Ref]digest.State
	err    error
	reads  int
}

func (b *blind) Observe(string, []reference.Ref) map[reference.Ref]digest.State {
	return map[reference.Ref]digest.State{}
}

func (b *blind) WaitForSync(context.Context) error { return b.err }

func (b *blind) Current(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	b.reads++
	return b.states, b.err
}

func (b *blind) Live(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error) {
	return b.states, b.err
}

// refusing counts the patches that it refuses.
type refusing struct {
	client.Client
	writes int
}

func (w *refusing) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	w.writes++
	return errors.New("refused")
}

// What may not be watched is read before anything is decided: nothing known of it is no change of it.
func TestWhatIsNotObservedIsRead(t *testing.T) {
	t.Parallel()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := ringOf(t, "a")
	newest, _ := ring.Newest()
	there := digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "1", ring)
	for name, tc := range map[string]struct {
		store  blind
		writes int
		again  bool
	}{
		"it is still absent":  {store: blind{states: map[reference.Ref]digest.State{app: {Absent: true}}}},
		"it has been created": {store: blind{states: map[reference.Ref]digest.State{app: there}}, writes: 1, again: true},
		"it cannot be read":   {store: blind{err: errors.New("forbidden")}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &refusing{}
			l := newLoop(cluster{
				client: w, events: &sent{}, Dependencies: Dependencies{Store: &tc.store, Keys: &fakeKeys{ring: ring}},
			}, Options{Webhook: true})
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: viewOf(t)}
			s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app=-"}
			result := l.reconcile(t.Context(), s).close(t.Context(), l.actions)
			assert.Equal(t, 1, tc.store.reads)
			assert.Equal(t, tc.writes, w.writes)
			assert.Equal(t, tc.again, result.RequeueAfter > 0, "tried again")
		})
	}
}
