package stamp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestOnlyDeploymentsArePaused(t *testing.T) {
	t.Parallel()
	keys := annotation.NewStakaterKeys()
	reader := Reader{Dialects: []annotation.Dialect{annotation.Stakater{Keys: keys}}}
	for _, kind := range workload.Builtin() {
		raw := map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{keys.Auto: "true", keys.PausePeriod: "5m"}},
			"spec":     map[string]any{"template": map[string]any{}, "jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{}}}},
		}
		view, problems := reader.Read(workload.Object{Kind: kind, Raw: raw})
		if kind.Kind == "Deployment" {
			assert.Equal(t, 5*time.Minute, view.Intent.PausePeriod)
			assert.Empty(t, problems)
			continue
		}
		assert.Zero(t, view.Intent.PausePeriod, kind.Kind)
		assert.Len(t, problems, 1, kind.Kind)
	}
}

func TestOnlyArgoRolloutsAreRestarted(t *testing.T) {
	t.Parallel()
	keys := annotation.NewStakaterKeys()
	reader := Reader{Dialects: []annotation.Dialect{annotation.Stakater{Keys: keys}}}
	rollout, deployment := workload.Rollout(), workload.Deployment()
	for kind, want := range map[*workload.Kind][]annotation.Problem{
		&rollout:    nil,
		&deployment: {{Message: "the rollout strategy restart has no effect on a Deployment: only Argo Rollouts have it"}},
	} {
		view, problems := reader.Read(workload.Object{Kind: *kind, Raw: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{keys.Auto: "true", "reloader.stakater.com/rollout-strategy": "restart"}},
			"spec":     map[string]any{"template": map[string]any{}},
		}})
		assert.Equal(t, want, problems, kind.Kind)
		assert.Equal(t, want == nil, view.Intent.Restart, kind.Kind)
	}
}
