package explain_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestReportText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
		Time: now.Add(-90 * time.Second), Hash: f.hash, Cause: record.CauseConfigChange,
		Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}.String()
	f.raw["spec"].(map[string]any)["paused"] = true
	f.in.States[app] = f.state("2", "b")
	f.in.Paths = [][]string{{"secret/tls", "certificates.cert-manager.io/web"}}
	text := f.text(t)
	for _, want := range []string{
		"Deployment shop/cart: a reload is due (configmap/app modified)",
		"A new template does not replace the running pods by itself: paused.",
		"Last reload: 2026-01-02T03:02:35Z (1m30s ago), because configuration changed:\n  configmap/app modified\n",
		"Path: secret/tls → certificates.cert-manager.io/web → deployment/cart\n",
	} {
		assert.Contains(t, text, want)
	}
	assert.Regexp(t, `(?m)^configmap/app  .*  modified$`, text)
	assert.Regexp(t, `(?m)^secret/db \(required\)  .*  no$`, text)
	assert.NotContains(t, text, "Earlier reloads")
}

// An error of the API server is longer than all that is in the table.
func TestReadErrorIsBelowTheTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.in.ReadErrors = map[reference.Ref]error{db: errors.New(`secrets "db" is forbidden: User "dev" cannot get resource "secrets"`)}
	text := f.text(t)
	assert.Regexp(t, `(?m)^secret/db \(required\)  \S+  unreadable +unknown$`, text)
	assert.Contains(t, text, "\nCannot read secret/db: secrets \"db\" is forbidden: User \"dev\" cannot get resource \"secrets\"\n")
	row := f.explain().Configuration[1]
	assert.Equal(t, "unreadable", row.Now, "for programs")
	assert.Equal(t, `secrets "db" is forbidden: User "dev" cannot get resource "secrets"`, row.Error, "for programs")
}

func TestHeadlineSaysTheVerdictAndItsReason(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[policy.Action]string{
		policy.Reload: "a reload is due (why)", policy.Hold: "a reload is held (why)",
		policy.Nothing: "nothing is due (why)", "": "it is unknown whether a reload is due (why)",
	} {
		var out bytes.Buffer
		require.NoError(t, explain.Report{Verdict: string(verdict), Reason: "why"}.Write(&out))
		assert.Contains(t, out.String(), want)
	}
}

func TestPartitionKeepsSomePods(t *testing.T) {
	t.Parallel()
	for partition, kept := range map[int64]string{1: "partition 1 keeps the first pod.", 2: "partition 2 keeps the first 2 pods.", 10: "partition 10 keeps the first 10 pods."} {
		f := newFixture(t)
		f.kind = "statefulset"
		f.raw["spec"].(map[string]any)["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"partition": partition}}
		var out bytes.Buffer
		require.NoError(t, f.explain().Write(&out))
		assert.Contains(t, out.String(), "A new template does not replace all running pods by itself: "+kept+"\n")
	}
}

// Only a StatefulSet has an order of its pods.
func TestPartitionOfOtherPodsThanTheFirst(t *testing.T) {
	t.Parallel()
	for kind, partition := range map[string]any{"statefulset": "50%", "daemonset": int64(2)} {
		f := newFixture(t)
		f.kind = kind
		f.raw["spec"].(map[string]any)["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"partition": partition}}
		var out bytes.Buffer
		require.NoError(t, f.explain().Write(&out))
		assert.Contains(t, out.String(), fmt.Sprintf("A new template does not replace all running pods by itself: partition %v.\n", partition))
	}
}

func TestUpdateInPlaceRestartsNoPods(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.raw["spec"].(map[string]any)["updateStrategy"] = map[string]any{"type": "InPlaceIfPossible"}
	var out bytes.Buffer
	require.NoError(t, f.explain().Write(&out))
	assert.Contains(t, out.String(), "nothing is due (the pod template has the current configuration)")
	assert.Contains(t, out.String(), "A new template does not replace the running pods by itself: InPlaceIfPossible.\n")
	assert.Contains(t, out.String(), "Problem: the update strategy InPlaceIfPossible restarts no container")
}

func TestChangesThatTheRecordOnlyCountsAreSaid(t *testing.T) {
	t.Parallel()
	for want, changes := range map[string][]record.Change{
		"because configuration changed:\n  changes whose names do not fit into the annotations: 2\n": nil,
		"because configuration changed:\n  configmap/app modified\n  2 more\n":                       {{Ref: "configmap/app", Type: record.Modified}},
	} {
		f := newFixture(t)
		f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
			Time: now, Hash: f.hash, Cause: record.CauseConfigChange, Changes: changes, More: 2,
		}.String()
		var out bytes.Buffer
		require.NoError(t, f.explain().Write(&out))
		assert.Contains(t, out.String(), want)
	}
}

func TestLastReloadSaysWhy(t *testing.T) {
	t.Parallel()
	change := []record.Change{{Ref: "configmap/app", Type: record.Modified}}
	tests := map[string]struct {
		reason string
		last   record.LastReload
		want   string
	}{
		"changed":                    {reason: "The plain case.", last: record.LastReload{Cause: record.CauseConfigChange, Changes: change}, want: "because configuration changed:\n  configmap/app modified\n"},
		"release":                    {reason: "It brought a change.", last: record.LastReload{Cause: record.CauseRelease, Changes: change}, want: "with a release, which also brought:\n  configmap/app modified\n"},
		"release of a stamp":         {reason: "It brought none.", last: record.LastReload{Cause: record.CauseRelease}, want: "with a release.\n"},
		"verified":                   {reason: "A client may name changes.", last: record.LastReload{Cause: record.CauseVerifiedReload}, want: "requested by a client with a verified digest.\n"},
		"a cause of a later version": {reason: "It is better than nothing.", last: record.LastReload{Cause: "full-moon", Changes: change}, want: "full-moon:\n  configmap/app modified\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tc.last.Time, tc.last.Hash = now, f.hash
			f.annotations()["pod-reloader.cs.sap.com/last-reload"] = tc.last.String()
			assert.Contains(t, f.text(t), "Last reload: 2026-01-02T03:04:05Z (0s ago), "+tc.want, tc.reason)
		})
	}
}

// It may have been left out, or removed.
func TestNoLastReloadIsNoClaim(t *testing.T) {
	t.Parallel()
	assert.Contains(t, newFixture(t).text(t), "\nNo reload is recorded for the present pod template.\n")
}

func TestEarlierReloads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
		Time: now.Add(-time.Minute), Hash: f.hash, Cause: record.CauseConfigChange, Before: []record.Past{
			{Time: now.Add(-time.Hour), Hash: "b", Cause: record.CauseRelease}, {Time: now.Add(-2 * time.Hour), Hash: "a", Cause: record.CauseListEdit},
		},
	}.String()
	assert.Equal(t, []explain.EarlierReload{
		{Time: now.Add(-time.Hour), Age: "1h0m0s", Cause: record.CauseRelease}, {Time: now.Add(-2 * time.Hour), Age: "2h0m0s", Cause: record.CauseListEdit},
	}, f.explain().Earlier)
	assert.Contains(t, f.text(t), "\nEarlier reloads:\n  2026-01-02T02:04:05Z (1h0m0s ago), with a release\n"+
		"  2026-01-02T01:04:05Z (2h0m0s ago), because the list of config objects was edited\n")
}

// Events and errors repeat texts of other programs.
func TestTextControlsNoTerminal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.in.Warnings = []explain.Warning{{Time: now, Reason: "Re\x1b[2Jason", Message: "denied\x1b]0;title\a\tby\ra policy"}}
	f.in.FailingWatch = &explain.Warning{Time: now, Message: "watch\x1b[31m"}
	text := f.text(t)
	assert.NotContains(t, text, "\x1b")
	assert.Contains(t, text, "Warning 0s ago, Re\ufffd[2Jason: denied\ufffd]0;title\ufffd\ufffdby\ufffda policy\n")
}

// text is the Report for a person.
func (f *fixture) text(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, f.explain().Write(&out))
	return out.String()
}
