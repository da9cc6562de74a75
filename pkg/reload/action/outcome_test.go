package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
)

// What the user must mend is tried again with each event of its configuration. A stored request waits for the next attempt, and
// what passes by itself waits whatever happens.
func TestFailedAttemptIsDeferred(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		stored, soon             bool
		withoutEvent, afterEvent bool
	}{
		"what the user must mend": {},
		"passes by itself":        {soon: true, withoutEvent: true, afterEvent: true},
		"a request is stored":     {stored: true, withoutEvent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reloadtest.Web(t)
			s.Stored = tc.stored
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, &reloadtest.Outbox{})
			actions.state.Changes.Changed(s.Key, now)
			actions.state.Changes.Attempt(s.Key)
			result := failed{s, failure{reason: reasonReloadFailed, err: errors.New("denied"), soon: tc.soon}}.close(t.Context(), actions)
			assert.Positive(t, result.RequeueAfter)
			deferrals := &actions.state.Deferrals
			assert.Equal(t, tc.withoutEvent, deferrals.Wait(s.Key, time.Time{}, now) > 0)
			assert.Equal(t, tc.afterEvent, deferrals.Wait(s.Key, now.Add(time.Millisecond), now) > 0, "its configuration has changed since")
			assert.Equal(t, tc.soon, !actions.state.Changes.Attempt(s.Key).Unacted.IsZero(), "the time to settle begins anew, unless it passes by itself")
		})
	}
}
