package annotation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

func TestPausePeriod(t *testing.T) {
	t.Parallel()
	key := annotation.NewStakaterKeys().PausePeriod
	wrong := func(quoted string) string {
		return `annotation "` + key + `": ` + quoted + " is not a duration above 0 and up to 168h, such as 30s or 5m, and reloads do not pause the Deployment"
	}
	for value, tc := range map[string]struct {
		period  time.Duration
		problem string
	}{
		"5m":     {period: 5 * time.Minute},
		"1h30m":  {period: 90 * time.Minute},
		"168h":   {period: 168 * time.Hour},
		"169h":   {problem: wrong(`"169h"`)},
		"0s":     {problem: wrong(`"0s"`)},
		"-1s":    {problem: wrong(`"-1s"`)},
		"5":      {problem: wrong(`"5"`)},
		"":       {problem: wrong(`""`)},
		"5m 30s": {problem: wrong(`"5m 30s"`)},
	} {
		source := annotation.Source{Workload: map[string]string{autoKey: "true", key: value}, References: used()}
		intent, problems := annotation.Parse(source, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		assert.Equal(t, tc.period, intent.PausePeriod, value)
		assert.NotEmpty(t, intent.Selections, "the rest works: %q", value)
		if tc.problem == "" {
			assert.Empty(t, problems, value)
			continue
		}
		assert.Equal(t, []annotation.Problem{{Message: tc.problem}}, problems, value)
	}
	source := annotation.Source{Template: map[string]string{autoKey: "true", key: "5m"}, References: used()}
	intent, problems := annotation.Parse(source, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	assert.Zero(t, intent.PausePeriod)
	assert.Len(t, problems, 1, "it is read from the workload only")
}

func TestRolloutStrategy(t *testing.T) {
	t.Parallel()
	const key = "reloader.stakater.com/rollout-strategy"
	for value, want := range map[string]bool{"restart": true, "rollout": false, "Restart": false, "": false} {
		source := annotation.Source{Workload: map[string]string{autoKey: "true", key: value}, References: used()}
		intent, problems := annotation.Parse(source, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		assert.Equal(t, want, intent.Restart, value)
		assert.NotEmpty(t, intent.Selections, "the rest works: %q", value)
		if value == "restart" || value == "rollout" {
			assert.Empty(t, problems, value)
			continue
		}
		assert.Equal(t, []annotation.Problem{{Message: `annotation "` + key + `": "` + value + `" is unknown and counts as "rollout": write "rollout" or "restart"`}}, problems)
	}
	for name, source := range map[string]annotation.Source{
		"beside the others":      {Template: map[string]string{autoKey: "true", key: "restart"}},
		"others on the workload": {Workload: map[string]string{autoKey: "true"}, Template: map[string]string{key: "restart"}},
	} {
		source.References = used()
		intent, problems := annotation.Parse(source, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
		assert.False(t, intent.Restart, "on the pod template, %s", name)
		assert.Equal(t, []annotation.Problem{{
			Message: `annotation "` + key + `" on the pod template has no effect: put it into metadata.annotations of the workload`,
		}}, problems, "on the pod template, %s", name)
	}
}
