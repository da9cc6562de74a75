package gather_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A CronJob is run, and a Job is created again, for what Reloader's annotations select. --run-cronjobs=false is about CronJobs only.
func TestWhatReloadsAtOnce(t *testing.T) {
	t.Parallel()
	reader := reloadtest.Reader()
	reader.Dialects = append(reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	reader.Objects = func(string) (annotation.Objects, error) { return annotation.Unlisted{}, nil }
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	for name, tc := range map[string]struct {
		kind        string
		withoutRuns bool
		want        bool
	}{
		"CronJob":                    {"CronJob", false, true},
		"CronJob, it waits":          {"CronJob", true, false},
		"Job":                        {"Job", false, true},
		"Job, CronJobs wait":         {"Job", true, true},
		"Deployment":                 {"Deployment", false, true},
		"Deployment, CronJobs wait":  {"Deployment", true, true},
		"StatefulSet, CronJobs wait": {"StatefulSet", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kind workload.Kind
			for _, k := range append(workload.Builtin(), workload.Job()) {
				if k.Kind == tc.kind {
					kind = k
				}
			}
			require.NotEmpty(t, kind.Kind)
			o := reloadtest.Summary(kind, map[string]any{"metadata": map[string]any{
				"uid": "u1", "name": "cart", "annotations": map[string]any{"configmap.reloader.stakater.com/reload": "app"},
			}})
			s := gather.Gatherer{Reader: reader, WithoutRuns: tc.withoutRuns}.Subject(workload.Key{}, o, state.Arrivals{})
			trigger, tracked := s.View.Intent.Tracked[app]
			assert.True(t, tracked, "it is tracked in any case")
			assert.Equal(t, tc.want, trigger.AtOnce)
		})
	}
}
