package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

func TestBlindnessIsExplained(t *testing.T) {
	t.Parallel()
	for name, blinded := range map[string]history.Step{
		"configuration is refused": step("withdraw-rights", "configmaps", "for", "8m", "verbs", "list,watch"),
		"configuration hangs":      step("hang-watches", "secrets", "for", "8m"),
		"configuration is silent":  step("abandon-watches", "configmaps", "for", "8m"),
		"workloads are refused":    step("withdraw-rights", "deployments", "for", "8m", "verbs", "list,watch"),
		"workloads hang":           step("hang-watches", "deployments", "for", "8m"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history.History{Form: history.Form, Seed: 1, Setup: history.Setup{Replicas: 2}, Steps: []history.Step{blinded}}
			require.NoError(t, Catalogue().Check(h))
			o := runner(t)(h)
			assert.Empty(t, o.Violations, words(h, o.Violations))
			assert.Equal(t, 1, o.Judged["blindness judged: configuration"]+o.Judged["blindness judged: workloads"])
			assert.Equal(t, 1, o.Judged["explanations judged"])
		})
	}
}
