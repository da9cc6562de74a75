package reload

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestContestIsReportedOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]func(n int) string{
		"removed": func(int) string { return "" },
		"spoiled": func(n int) string { return fmt.Sprint("junk ", n) },
	}
	for name, present := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &reloadtest.Outbox{}
			l := newLoop(cluster{Dependencies: Dependencies{Events: out}}, Options{Now: func() time.Time { return now }})
			for n := range 6 {
				managed := stamp.Managed{stamp.Record: present(n)}
				s := gather.Subject{Key: workload.Key{Name: "web"}, View: stamp.View{Managed: managed}}
				l.contested(t.Context(), s)
				l.state.Contests.Wrote(s.Key, managed[stamp.Record], now)
				l.actions.Close(t.Context(), action.InOrder{Subject: s})
			}
			require.Len(t, out.Messages, 1)
			assert.Contains(t, out.Notes()[0], "managedFields")
		})
	}
}

func TestRefractoryTimeCountsFromAReloadWhoseLastReloadIsGone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLoop(cluster{}, Options{Now: func() time.Time { return now }, Refractory: 5 * time.Second})
	old := record.LastReload{Time: now.Add(-time.Hour), Hash: "abc", Cause: record.CauseConfigChange}
	for name, managed := range map[string]stamp.Managed{
		"removed": {}, "reverted": {stamp.Hash: "abc", stamp.LastReload: old.String()},
	} {
		s := gather.Subject{Key: workload.Key{Name: name}, View: stamp.View{Managed: managed}}
		wait, _ := l.pacing.gates.Wait(l.pacing.input(s))
		assert.Zero(t, wait, name)
		l.state.Writes.Stamped(s.Key, 3, now.Add(-time.Second))
		wait, _ = l.pacing.gates.Wait(l.pacing.input(s))
		assert.Equal(t, 4*time.Second, wait, name)
	}
}

func TestNothingIsKeptOfWorkloadsInOrder(t *testing.T) {
	t.Parallel()
	l := newLoop(cluster{}, Options{})
	s := gather.Subject{Key: workload.Key{Name: "cart"}}
	l.state.Changes.Attempt(s.Key)
	l.state.Changes.Acted(s.Key)
	l.state.Takeovers.Done(s.Key, "", "1")
	l.actions.Close(t.Context(), action.InOrder{Subject: s})
	assert.Equal(t, &state.State{}, l.state, "a cluster has many workloads that ask for nothing")
}
