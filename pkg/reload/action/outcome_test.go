package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// What the user must fix is tried again with each event of its configuration. A stored request waits for the next attempt, and
// what passes by itself waits whatever happens.
func TestFailedAttemptIsDeferred(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		stored, soon             bool
		withoutEvent, afterEvent bool
	}{
		"what the user must fix": {},
		"passes by itself":       {soon: true, withoutEvent: true, afterEvent: true},
		"a request is stored":    {stored: true, withoutEvent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reloadtest.Web(t)
			s.Stored = tc.stored
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, &reloadtest.Outbox{})
			actions.state.Changes.EventArrived(s.Key, now)
			actions.state.Changes.BeginAttempt(s.Key)
			result := failed{s, failure{reason: reasonReloadFailed, err: errors.New("denied"), soon: tc.soon}}.close(t.Context(), actions.base)
			assert.Positive(t, result.RequeueAfter)
			deferrals := &actions.state.Deferrals
			assert.Equal(t, tc.withoutEvent, deferrals.Wait(s.Key, time.Time{}, now) > 0)
			assert.Equal(t, tc.afterEvent, deferrals.Wait(s.Key, now.Add(time.Millisecond), now) > 0, "its configuration has changed since")
			assert.Equal(t, tc.soon, !actions.state.Changes.BeginAttempt(s.Key).FirstUnhandled.IsZero(), "the time to settle begins again, unless it passes by itself")
		})
	}
}

// An adoption does not wait until the configuration has settled. Where it fails, the changes have still to settle.
func TestFailedAttemptHasActedOnWhatHasSettledOnly(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		first, last time.Duration
		acted       bool
	}{
		"the configuration settles":                  {first: 500 * time.Millisecond, last: 500 * time.Millisecond},
		"the configuration changes all the time":     {first: 4 * time.Second, last: time.Millisecond},
		"the configuration has settled":              {first: time.Second, last: time.Second, acted: true},
		"the configuration has changed for too long": {first: 5 * time.Second, last: time.Millisecond, acted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actions := newActions(Options{
				Gather: gather.Gatherer{Now: func() time.Time { return now }}, Gates: state.Gates{Settle: time.Second, SettleMax: 5 * time.Second},
			}, &reloadtest.Outbox{})
			s := reloadtest.Web(t)
			actions.state.Changes.EventArrived(s.Key, now.Add(-tc.first))
			actions.state.Changes.EventArrived(s.Key, now.Add(-tc.last))
			s.Events = actions.state.Changes.BeginAttempt(s.Key)
			failed{s, failure{reason: reasonForeignKey, err: errors.New("another installation")}}.close(t.Context(), actions.base)
			assert.Equal(t, tc.acted, actions.state.Changes.BeginAttempt(s.Key).FirstUnhandled.IsZero())
		})
	}
}
