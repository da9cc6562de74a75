package action

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// What the user must fix is tried again when its configuration has changed, or the workload. A stored request waits for the next attempt,
// and what passes by itself waits whatever happens. Under constant change there is a pace in any case.
func TestFailedAttemptIsDeferred(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const longest = 3 * time.Second
	for name, tc := range map[string]struct {
		stored, soon bool
		// each is how long the next attempt waits after six that failed.
		withoutEvent, afterEvent, afterWrite, otherWrites time.Duration
	}{
		"what the user must fix": {withoutEvent: longest, afterEvent: longest, otherWrites: longest},
		"passes by itself":       {soon: true, withoutEvent: 800 * time.Millisecond, afterEvent: 800 * time.Millisecond, afterWrite: 800 * time.Millisecond, otherWrites: 800 * time.Millisecond},
		"a request is stored":    {stored: true, withoutEvent: 32 * time.Second, afterEvent: longest, afterWrite: longest, otherWrites: longest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reloadtest.Web(t)
			actions := newActions(Options{Gather: gather.Gatherer{Now: func() time.Time { return now }}}, &reloadtest.Outbox{})
			actions.state.Changes.EventArrived(s.Key, now)
			actions.state.Changes.BeginAttempt(s.Key)
			for range 6 {
				result := failed{s, failure{reason: reasonReloadFailed, err: errors.New("denied"), soon: tc.soon, stored: tc.stored}}.close(t.Context(), actions.base)
				assert.Positive(t, result.RequeueAfter)
			}
			deferrals, changed := &actions.state.Deferrals, now.Add(time.Millisecond)
			assert.Equal(t, tc.withoutEvent, deferrals.Wait(s.Key, time.Time{}, now))
			assert.Equal(t, tc.afterEvent, deferrals.Wait(s.Key, changed, now), "its configuration has changed since")
			assert.Equal(t, tc.otherWrites, actions.WaitToWrite(s))
			assert.Equal(t, tc.soon, !actions.state.Changes.BeginAttempt(s.Key).FirstUnhandled.IsZero(), "the time to settle begins again, unless it passes by itself")
			deferrals.Written(s.Key)
			assert.Equal(t, tc.afterWrite, deferrals.Wait(s.Key, changed, now), "the workload has changed since")
			assert.Equal(t, tc.stored, actions.WaitToWrite(s) > 0, "the write is its own")
		})
	}
}

// The workload is looked at when the wait ends: until then a config event leads to nothing, and needs no look.
func TestConfigEventNeedsNoLookWhileAWriteWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, fails := range map[string]bool{"an attempt has failed": true, "none has": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reloadtest.Web(t)
			actions := newActions(Options{
				Gates: state.Gates{Settle: time.Second, SettleMax: 5 * time.Second}, Gather: gather.Gatherer{Now: func() time.Time { return now }},
			}, &reloadtest.Outbox{})
			changes := &actions.state.Changes
			changes.EventArrived(s.Key, now)
			changes.BeginAttempt(s.Key)
			if fails {
				failed{s, failure{reason: reasonReloadFailed, err: errors.New("denied")}}.close(t.Context(), actions.base)
				changes.BeginAttempt(s.Key)
			}
			assert.Equal(t, fails, actions.WaitToWrite(s) > 0)
			looks, later := changes.EventArrivedFor([]workload.Key{s.Key}, now.Add(time.Millisecond))
			if fails {
				assert.Empty(t, looks)
				assert.Equal(t, []state.Look{{Key: s.Key, After: 5 * time.Second}}, later)
			} else {
				assert.Equal(t, []workload.Key{s.Key}, looks, "the change is acted on")
			}
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
