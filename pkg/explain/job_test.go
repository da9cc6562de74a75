package explain_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// What the loop says about a Job.
func TestExplainJob(t *testing.T) {
	t.Parallel()
	auto := func(f *fixture) { f.annotations()["configmap.reloader.stakater.com/reload"] = "app" }
	finished := func(f *fixture) {
		auto(f)
		f.raw["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	}
	for name, tc := range map[string]struct {
		change          func(*fixture)
		verdict, reason string
	}{
		"SAP's annotations": {func(*fixture) {}, "nothing", "stamped once, when it is created"},
		"both":              {auto, "reload", "configmap/app modified"},
		"finished":          {finished, "nothing", "only with --rerun-finished-jobs"},
		"finished ones run again": {func(f *fixture) {
			finished(f)
			f.in.RerunFinishedJobs = true
		}, "reload", "configmap/app modified"},
		"suspended": {func(f *fixture) {
			auto(f)
			f.raw["spec"].(map[string]any)["suspend"] = true
		}, "nothing", "the Job is suspended: its pods start with the present configuration"},
		"suspended, and the change is posted": {func(f *fixture) {
			auto(f)
			f.raw["spec"].(map[string]any)["suspend"] = true
			f.in.NotifyOnly = true
		}, "reload", "configmap/app modified; the installation posts that"},
		"no annotations": {func(f *fixture) {
			finished(f)
			clear(f.annotations())
		}, "nothing", "no annotation asks for reloads"},
		"a label": {func(f *fixture) {
			f.metadata()["labels"] = map[string]any{"pod-reloader.cs.sap.com/ignored": "true"}
		}, "nothing", "a label excludes"},
		"nothing selected": {func(f *fixture) {
			clear(f.annotations())
			f.annotations()["configmap.reloader.stakater.com/reload"] = "app-.*"
		}, "nothing", "the annotations select no object"},
		"of a CronJob": {func(f *fixture) {
			auto(f)
			f.metadata()["ownerReferences"] = []any{map[string]any{"controller": true}}
		}, "nothing", "another object controls the Job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.kind = "job"
			f.in.States[app] = f.state("2", "b")
			tc.change(f)
			report := f.explain()
			assert.Equal(t, tc.verdict, report.Verdict, report.Reason)
			assert.Contains(t, report.Reason, tc.reason)
			assert.Len(t, report.Configuration, len(f.in.View.Intent.Tracked))
		})
	}
}

// The pods of a Job that is suspended, or that runs, may wait for them, and the name in an annotation may be wrong.
func TestExplainJobNamesMissingObjectsUnlessItIsLeftAlone(t *testing.T) {
	t.Parallel()
	missing := []string{"not found in this namespace: configmap/app; check the name, or create it"}
	for name, tc := range map[string]struct {
		spec, status map[string]any
		controlled   bool
		want         []string
	}{
		"runs":              {want: missing},
		"suspended":         {spec: map[string]any{"suspend": true}, want: missing},
		"finished":          {status: map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}},
		"of another object": {controlled: true},
	} {
		for _, list := range []string{"pod-reloader.cs.sap.com/configmaps", "configmap.reloader.stakater.com/reload"} {
			f := newFixture(t)
			f.kind = "job"
			f.in.States[app] = digest.State{Absent: true}
			clear(f.annotations())
			f.annotations()[list] = "app"
			maps.Copy(f.raw["spec"].(map[string]any), tc.spec)
			f.raw["status"] = tc.status
			if tc.controlled {
				f.metadata()["ownerReferences"] = []any{map[string]any{"controller": true}}
			}
			assert.Equal(t, tc.want, f.explain().Problems, "%s, %s", name, list)
		}
	}
}
