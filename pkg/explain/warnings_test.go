package explain_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

func TestWarningsSayWhyWhatIsDueIsNotDone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
		Time: now.Add(-time.Hour), Hash: f.hash, Cause: record.CauseConfigChange,
	}.String()
	f.in.Warnings = []explain.Warning{
		{Time: now.Add(-2 * time.Hour), Reason: "ReloadHeld", Message: "long ago"},
		{Time: now.Add(-3 * time.Minute), Reason: "ReloadFailed", Message: "denied by policy one"},
		{Time: now.Add(-time.Minute), Reason: "ConfigUnreadable", Message: "read secret/a\nread secret/b"},
		{Time: now.Add(-2 * time.Minute), Reason: "ReloadFailed", Message: "denied by policy two"},
	}
	report := f.explain()
	require.Len(t, report.Warnings, 2, "the last of each reason, since the last reload")
	assert.Equal(t, "ConfigUnreadable", report.Warnings[0].Reason, "newest first")
	assert.Equal(t, "denied by policy two", report.Warnings[1].Message)
	var out bytes.Buffer
	require.NoError(t, report.Write(&out))
	assert.Contains(t, out.String(), "\nWarning 1m0s ago, ConfigUnreadable: read secret/a; read secret/b\n"+
		"\nWarning 2m0s ago, ReloadFailed: denied by policy two\n")

	f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
		Time: now.Add(time.Hour), Hash: f.hash, Cause: record.CauseConfigChange,
	}.String()
	assert.Len(t, f.explain().Warnings, 3, "by a wrong clock: which Warnings came before it is not known")
}

// A reload ends neither what another writer does, nor a lack of space, nor a refusal to end a pause or to run a CronJob. What it has ended is
// not shown.
func TestWarningsThatAReloadDoesNotEndAreKept(t *testing.T) {
	t.Parallel()
	unrecorded := func(f *fixture) { delete(f.annotations(), f.in.Keys.ConfigRecord) }
	paused := func(f *fixture) {
		keys := annotation.NewStakaterKeys()
		f.in.Stakater = &keys
		f.raw["spec"].(map[string]any)["paused"] = true
		f.annotations()[keys.PausedAt] = "2026-01-02T03:00:00Z"
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*fixture)
		kept   bool
	}{
		"no space for the Record":       {"RecordTooLarge", unrecorded, true},
		"the Record has space again":    {reason: "RecordTooLarge"},
		"the Record is removed":         {"AdoptionFailed", unrecorded, true},
		"the Record is kept again":      {reason: "AdoptionFailed"},
		"another writer":                {"RecordContested", func(*fixture) {}, true},
		"the run was refused":           {"RunForbidden", func(*fixture) {}, true},
		"a request that comes again":    {"RequestContested", func(f *fixture) { f.annotations()[f.in.Keys.ConfigHash] = "x@1" }, true},
		"the request is gone":           {reason: "RequestContested"},
		"the pause cannot be ended":     {"ResumeFailed", paused, true},
		"the pause has ended":           {reason: "ResumeFailed"},
		"a pause that comes again":      {"PauseContested", paused, true},
		"the pause is gone":             {reason: "PauseContested"},
		"the reload was held before it": {reason: "ReloadHeld"},
		"the reload was refused":        {reason: "ReloadFailed"},
		"the stamp before was lost":     {reason: "StampLost"},
		"an object was missing":         {reason: "ConfigMissing"},
		"the Record was adopted":        {reason: "RecordAdopted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.annotations()[f.in.Keys.LastReload] = record.LastReload{
				Time: now.Add(-time.Minute), Hash: f.hash, Cause: record.CauseConfigChange,
			}.String()
			if tc.change != nil {
				tc.change(f)
			}
			f.in.Warnings = []explain.Warning{{Time: now.Add(-2 * time.Minute), Reason: tc.reason}}
			assert.Equal(t, tc.kept, len(f.explain().Warnings) == 1)
		})
	}
}

// A refused run is reported right before its reload. A later reload that runs the CronJob reports its own refusal.
func TestRefusedRunIsShownUntilALaterReloadHasRunTheCronJob(t *testing.T) {
	t.Parallel()
	refused, before, after := now.Add(-10*time.Minute), now.Add(-20*time.Minute), now.Add(-9*time.Minute)
	for name, tc := range map[string]struct {
		earlier []time.Time
		ref     string
		kept    bool
	}{
		"its reload is the last one":        {nil, "configmap/app", true},
		"there was a reload before it":      {[]time.Time{before}, "configmap/app", true},
		"a later reload has run it":         {[]time.Time{after}, "configmap/app", false},
		"later reloads have run it":         {[]time.Time{now.Add(-2 * time.Minute), after}, "configmap/app", false},
		"a later reload only stamps":        {[]time.Time{after}, "secret/db", true},
		"a later reload names no changes":   {[]time.Time{after}, "", true},
		"what a later reload names is gone": {[]time.Time{after}, "configmap/old", true},
	} {
		last := record.LastReload{Time: now.Add(-time.Minute), Cause: record.CauseConfigChange}
		if tc.ref != "" {
			last.Changes = []record.Change{{Ref: tc.ref, Type: record.Modified}}
		}
		for _, at := range tc.earlier {
			last.Before = append(last.Before, record.Past{Time: at, Cause: record.CauseConfigChange})
		}
		assert.Equal(t, tc.kept, showsRefusedRun(t, refused, last), name)
	}
}

// What a write of a user adds to the lists has not changed.
func TestRefusedRunIsShownUntilAWriteBringsAChangeThatRunsTheCronJob(t *testing.T) {
	t.Parallel()
	refused := now.Add(-10 * time.Minute)
	for name, tc := range map[string]struct {
		cause, changed string
		kept           bool
	}{
		"a list edit adds what runs it":  {record.CauseListEdit, record.Listed, true},
		"a release adds what runs it":    {record.CauseRelease, record.Listed, true},
		"a list edit brings a change":    {record.CauseListEdit, record.Modified, false},
		"a release brings a change":      {record.CauseRelease, record.Modified, false},
		"a reload of what an edit added": {record.CauseConfigChange, record.Listed, false},
	} {
		last := record.LastReload{
			Time: now.Add(-time.Minute), Cause: tc.cause, Changes: []record.Change{{Ref: "configmap/app", Type: tc.changed}},
			Before: []record.Past{{Time: refused.Add(time.Minute), Cause: record.CauseConfigChange}},
		}
		assert.Equal(t, tc.kept, showsRefusedRun(t, refused, last), name)
	}
}

// showsRefusedRun reports whether a refused run is shown of a CronJob that configmap/app runs, after a later reload.
func showsRefusedRun(t *testing.T, refused time.Time, last record.LastReload) bool {
	t.Helper()
	f := newFixture(t)
	f.kind = "cronjob"
	f.raw["spec"] = map[string]any{"jobTemplate": map[string]any{"spec": f.raw["spec"]}}
	f.annotations()["configmap.reloader.stakater.com/reload"] = "app"
	last.Hash = f.hash
	f.annotations()[f.in.Keys.LastReload] = last.String()
	f.in.Warnings = []explain.Warning{{Time: refused, Reason: "RunForbidden"}}
	return len(f.explain().Warnings) == 1
}
