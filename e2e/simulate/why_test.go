package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

func TestBlindnessIsExplained(t *testing.T) {
	t.Parallel()
	plain := history.Setup{Replicas: 2}
	graph, selects := history.Setup{Replicas: 2, Graph: true, Flags: []string{configMapFlag}}, history.Setup{Replicas: 2, Flags: []string{namespaceFlag + "team=shop"}}
	for name, tt := range map[string]struct {
		setup   history.Setup
		blinded history.Step
	}{
		"configuration is refused": {plain, step("withdraw-permissions", "configmaps", "for", "8m", "verbs", "list,watch")},
		"configuration hangs":      {plain, step("hang-watches", "secrets", "for", "8m")},
		"configuration is silent":  {plain, step("abandon-watches", "configmaps", "for", "8m")},
		"workloads are refused":    {plain, step("withdraw-permissions", "deployments", "for", "8m", "verbs", "list,watch")},
		"namespaces are refused":   {selects, step("withdraw-permissions", "namespaces", "for", "8m", "verbs", "list,watch")},
		"namespaces hang":          {selects, step("hang-watches", "namespaces", "for", "8m")},
		"filters are refused":      {graph, step("withdraw-permissions", "filters", "for", "8m", "verbs", "get,list,watch")},
		"proxies hang":             {graph, step("hang-watches", "proxies", "for", "8m")},
		"workloads hang":           {plain, step("hang-watches", "deployments", "for", "8m")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history.History{Form: history.Form, Seed: 1, Setup: tt.setup, Steps: []history.Step{tt.blinded}}
			require.NoError(t, Catalogue().Check(h))
			o := runner(t)(h)
			assert.Empty(t, o.Violations, words(h, o.Violations))
			judged := 0
			for _, what := range []string{"configuration", "workloads", "namespaces", "custom resources"} {
				judged += o.Judged["blindness judged: "+what]
			}
			assert.Equal(t, 1, judged)
			assert.Equal(t, 1, o.Judged["explanations judged"])
		})
	}
}
