package tracking

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Its matches are found later, by another goroutine.
func TestEventReachesAWorkloadWithSlowExpressions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := make([]string, 100)
		for i := range names {
			names[i] = strings.Repeat("a", 240) + strconv.Itoa(i)
		}
		l := standby(Options{Reader: stakaterReader(), Patterns: pattern.NewIndex[workload.Key](func(string, reference.Kind) []string { return names })})
		q := reloadtest.Open(t, l.queue)
		l.leads.Begin(time.Now())
		kind := workload.Deployment()
		changesOf(l, kind)(workload.Summary{}, summaryOf(kind, map[string]any{"metadata": map[string]any{
			"namespace": "crowd", "name": "web", "annotations": map[string]any{"configmap.reloader.stakater.com/reload": strings.Repeat("a*", 16) + "b"},
		}}))
		key := workload.Key{Kind: kind.ID(), Namespace: "crowd", Name: "web"}
		taken, _ := q.Get()
		require.Equal(t, key, taken)
		q.Done(taken)
		began := time.Now()
		l.tracking.ConfigChanged(configstate.Event{Namespace: "crowd", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "ab"}, Received: began})
		synctest.Wait() // until all is matched
		require.Equal(t, 1, q.Len(), "the event reaches the workload all the same")
		taken, _ = q.Get()
		assert.Equal(t, key, taken)
		assert.Equal(t, began, l.state.Changes.BeginAttempt(key).Last, "as of when it came")
	})
}

// The index has no memory for the expressions of a workload until another one is gone.
func TestExpressionsOfAWorkloadAreKeptOnceThereIsMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		patterns := pattern.NewIndex[workload.Key](func(string, reference.Kind) []string { return nil })
		l := standby(Options{Reader: stakaterReader(), Patterns: patterns})
		kind := workload.Deployment()
		crowd := workload.Key{Kind: kind.ID(), Namespace: "shop", Name: "crowd"}
		var uses []pattern.Use
		for i := range 1200 {
			p, err := pattern.Compile("a" + strconv.Itoa(i) + "-[a-z]{60}")
			require.NoError(t, err)
			uses = append(uses, pattern.Use{Kind: reference.ConfigMap, Pattern: p})
		}
		patterns.Set(crowd, "shop", uses)
		late := summaryOf(kind, map[string]any{"metadata": map[string]any{
			"namespace": "shop", "name": "late", "annotations": map[string]any{"configmap.reloader.stakater.com/reload": "b[0-9]-[a-z]{60}"},
		}})
		w := &watched{kind: kind, workloads: workloadsOf{late}}
		l.tracking.watches.add(w)
		l.tracking.changes.changed(w, workload.Summary{}, late, "")
		patterns.Delete(crowd, "shop")
		synctest.Wait()
		require.True(t, patterns.Full("shop", reference.ConfigMap), "it was entered while there was no memory")

		l.tracking.EnterAgain(late.Key())
		synctest.Wait()
		assert.False(t, patterns.Full("shop", reference.ConfigMap), "the expressions of the crowd are gone, and its own fit")
		l.tracking.EnterAgain(workload.Key{Kind: "unknown", Namespace: "shop", Name: "late"})
	})
}
