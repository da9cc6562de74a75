package action

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

func TestStoredReloadRequestIsPurged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		stored bool
		err    error
		// fails says that an attempt has failed just now.
		fails bool
		// removals are those in a row that another writer has undone.
		removals int
		writes   int
		wait     time.Duration
		note     string
		failures float64
	}{
		"there is none":          {},
		"the request is removed": {stored: true, writes: 1},
		"removed once before":    {stored: true, removals: 1, writes: 1},
		"another writer sets it": {stored: true, removals: 3, wait: time.Second, note: "pod-reloader removes this reload request less and less often"},
		"the removal fails":      {stored: true, err: errors.New("no answer"), writes: 1, failures: 1},
		"an attempt has failed":  {stored: true, fails: true, wait: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, out := &patched{err: tc.err}, &reloadtest.Outbox{}
			reader := reloadtest.Reader()
			actions := newActions(Options{
				Gather: gather.Gatherer{Reader: reader, Now: func() time.Time { return now }}, Client: c, Metrics: prometheus.NewRegistry(),
			}, out)
			s := reloadtest.Web(t)
			if tc.stored {
				s.View.Managed[stamp.Dummy] = "4417e0@4"
			}
			for range tc.removals {
				actions.state.Contests.Removed(s.Key, reader.Keys.ConfigHash, now)
			}
			if tc.fails {
				actions.state.Deferrals.Failed(s.Key, state.Deferral{Until: now.Add(time.Second)}, now)
			}
			result := actions.LeaveAlone(t.Context(), s).close(t.Context(), actions.base)
			require.Len(t, c.bodies, tc.writes)
			if tc.writes > 0 {
				assert.Contains(t, c.bodies[0], `"annotations":{"`+reader.Keys.ConfigHash+`":null}`)
			}
			assert.InDelta(t, tc.failures, testutil.ToFloat64(actions.metrics.failures.WithLabelValues("PurgeFailed")), 0)
			if tc.failures == 0 {
				assert.Equal(t, tc.wait, result.RequeueAfter)
			}
			if tc.note == "" {
				assert.Empty(t, out.Notes())
			} else if assert.Len(t, out.Notes(), 1) {
				assert.Contains(t, out.Notes()[0], tc.note)
			}
			if tc.stored && tc.err == nil && tc.wait == 0 {
				for range 2 - tc.removals {
					actions.LeaveAlone(t.Context(), s)
				}
				assert.Equal(t, time.Second, actions.state.Contests.WaitToRemove(s.Key, reader.Keys.ConfigHash, now), "each removal is recorded")
			}
		})
	}
}
