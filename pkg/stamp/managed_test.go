package stamp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

func TestLastReloadOfManagedAnnotations(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(when time.Time, hash string) string { return record.LastReload{Time: when, Hash: hash}.String() }
	tests := map[string]struct {
		reason  string
		managed Managed
		want    time.Time
		there   bool
		// at is the time of the last reload of any template, where that is another one.
		at time.Time
	}{
		"of this template": {
			reason:  "The refractory time counts from it.",
			managed: Managed{Hash: "h", LastReload: at(now.Add(-time.Minute), "h")}, want: now.Add(-time.Minute), there: true,
		},
		"of this moment": {reason: "It is not in the future.", managed: Managed{Hash: "h", LastReload: at(now, "h")}, want: now, there: true},
		"in the future": {
			reason:  "A wrong clock must not delay reloads for as long as it is off.",
			managed: Managed{Hash: "h", LastReload: at(now.Add(time.Hour), "h")}, want: now, there: true,
		},
		"of another template": {reason: "It explains nothing of this one.", managed: Managed{Hash: "h", LastReload: at(now.Add(-time.Minute), "other")}, at: now.Add(-time.Minute)},
		"without a template":  {reason: "An export may have it.", managed: Managed{LastReload: at(now.Add(time.Hour), "h")}, at: now},
		"unreadable":          {reason: "A user may write anything there.", managed: Managed{Hash: "h", LastReload: "{"}},
		"none":                {reason: "Nothing was reloaded.", managed: Managed{Hash: "h"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, there := tc.managed.LastReload(now)
			assert.Equal(t, tc.there, there, tc.reason)
			assert.True(t, got.Time.Equal(tc.want), "%s: %s", tc.reason, got.Time)
			if tc.there {
				tc.at = tc.want
			}
			last, _ := tc.managed.LastReloadTime(now)
			assert.True(t, last.Equal(tc.at), "%s: %s", tc.reason, last)
		})
	}
}
