package refresh_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func set(t *testing.T, texts ...string) workload.Kinds {
	t.Helper()
	var kinds []workload.Kind
	for _, text := range texts {
		kind, err := workload.ParseKind(text)
		require.NoError(t, err)
		kinds = append(kinds, kind)
	}
	return workload.NewKinds(kinds...)
}

func TestFollowersOfKindsAreCalled(t *testing.T) {
	t.Parallel()
	kinds := refresh.NewKinds(set(t, "a.io/v1/A=spec.x", "b.io/v1/B=spec.x"))
	var calls []string
	record := func(what string) func(workload.Kind) {
		return func(kind workload.Kind) {
			_, there := kinds.Current().Get(kind.GroupVersionKind)
			require.True(t, there, "%s %s: what goes is still there, what comes is there already", what, kind)
			calls = append(calls, what+" "+kind.String())
		}
	}
	kinds.Follow(record("join"), record("leave"))
	assert.Equal(t, []string{"join a.io/v1/A=spec.x", "join b.io/v1/B=spec.x"}, calls, "the kinds at the start")

	calls = nil
	came, went := kinds.Set(set(t, "b.io/v1/B=spec.y", "c.io/v1/C=spec.x"))
	assert.Equal(t, []string{
		"leave a.io/v1/A=spec.x", "leave b.io/v1/B=spec.x", "join b.io/v1/B=spec.y", "join c.io/v1/C=spec.x",
	}, calls, "a kind whose template moves leaves and joins")
	assert.Len(t, came, 2)
	assert.Len(t, went, 2)

	calls = nil
	came, went = kinds.Set(set(t, "c.io/v1/C=spec.x", "b.io/v1/B=spec.y"))
	assert.Empty(t, calls, "nothing has changed")
	assert.Empty(t, append(came, went...))
}

// Requests ask while the set changes.
func TestKindsAreReadWhileTheyChange(t *testing.T) {
	t.Parallel()
	one, two := set(t, "a.io/v1/A=spec.x"), set(t, "a.io/v1/A=spec.x", "b.io/v1/B=spec.x")
	kinds := refresh.NewKinds(one)
	joined := 0
	kinds.Follow(func(workload.Kind) { joined++ }, func(workload.Kind) { joined-- })
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 200 {
				kinds.Set(two)
				assert.Contains(t, []int{1, 2}, len(kinds.Current().All()))
				kinds.Set(one)
			}
		})
	}
	running.Wait()
	assert.Equal(t, 1, joined, "calls are made one after the other")
}
