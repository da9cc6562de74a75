package explain_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
)

func TestReportSaysThatAWatchFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.in.FailingWatch = &explain.Warning{Time: now.Add(-3 * time.Minute), Reason: "WatchFailing", Message: "watches fail: secrets"}
	report := f.explain()
	require.NotNil(t, report.FailingWatch)
	assert.Equal(t, "3m0s", report.FailingWatch.Age)
	assert.Empty(t, f.in.FailingWatch.Age, "what was passed in stays as it is")
	var out bytes.Buffer
	require.NoError(t, report.Write(&out))
	assert.Contains(t, out.String(), "\nA watch of pod-reloader fails, as reported 3m0s ago: watches fail: secrets\n")
}

func TestReportSaysThatNoReplicaLeads(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		lease  *explain.Lease
		idle   bool
	}{
		"unknown": {reason: "An installation without an election has no lease."},
		"held": {
			reason: "It is renewed every second.",
			lease:  &explain.Lease{Renewed: now.Add(-time.Second), Ends: now.Add(14 * time.Second)},
		},
		"handed over": {
			reason: "Another replica takes over within seconds, and clocks differ.",
			lease:  &explain.Lease{Renewed: now.Add(-16 * time.Second), Ends: now.Add(-14 * time.Second)},
		},
		"over": {
			reason: "The pods are gone, or may not update it.",
			lease:  &explain.Lease{Name: "tools/reloader", Renewed: now.Add(-5 * time.Minute), Ends: now.Add(-285 * time.Second)},
			idle:   true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.in.Lease = tt.lease
			text := strings.Join(f.explain().Problems, "\n")
			if tt.idle {
				assert.Contains(t, text, "no replica of pod-reloader leads, so that changes restart nothing, unless it runs without --leader-elect: ", tt.reason)
				assert.Contains(t, text, "the lease tools/reloader was last renewed 5m0s ago", tt.reason)
			} else {
				assert.NotContains(t, text, "leads", tt.reason)
			}
		})
	}
}
