package annotation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

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
}
