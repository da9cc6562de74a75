package reload

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A reload of a workload with 200 config objects: what the loop decides before its request, and what the webhook decides about it.
func BenchmarkReload(b *testing.B) {
	ring := digesttest.Ring(b, "a")
	newest, _ := ring.Newest()
	states, names := map[reference.Ref]digest.State{}, []string{}
	for n := range 200 {
		ref := reference.Ref{Kind: reference.ConfigMap, Name: fmt.Sprintf("app-%03d", n)}
		names = append(names, ref.Name)
		states[ref] = digest.StateOf(digest.Content{Ref: ref, Namespace: "shop"}, "uid", "1", ring)
	}
	view, _ := reloadtest.Reader().Read(workload.Object{Kind: workload.Deployment(), Raw: map[string]any{
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "generation": int64(3),
			"annotations": map[string]any{annotation.DefaultPrefix + "configmaps": strings.Join(names, ",")},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}},
	}})
	view.Managed = stamp.Managed{stamp.Record: "v1:-:" + string(newest.ID) + ":configmap/app-000=-"}
	l := newLoop(loopDependencies{
		client:       &refusing{},
		Dependencies: Dependencies{Events: &reloadtest.Outbox{}, Store: &observing{reloadtest.Store{States: states}}, Keys: &reloadtest.Keys{Present: ring}},
	}, Options{Webhook: true})
	poked := view
	poked.Managed = maps.Clone(view.Managed)
	poked.Managed[stamp.Dummy] = digest.Bind(digest.AnyCurrent, 3)
	request := stamp.Write{Old: view, New: poked}
	b.Run("loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, View: view}
			l.actions.Close(b.Context(), l.decide(b.Context(), s))
			l.tracking.Forget(s.Key)
			l.actions.ReleaseSlot(s.Key)
		}
	})
	b.Run("webhook", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			result := stamp.Choose(request).Apply(request, stamp.Inputs{States: states, Ring: ring, Namespace: "shop", Now: time.Now()})
			require.True(b, result.Stamped, "the reload is due")
		}
	})
}

// observing is a Store whose watch has seen all.
type observing struct{ reloadtest.Store }

func (o *observing) Cached(string, []reference.Ref) map[reference.Ref]digest.State { return o.States }
