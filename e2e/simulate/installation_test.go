package simulate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func step(do, on string, with ...string) history.Step {
	s := history.Step{Do: do, On: on, Wait: history.Duration(20e9), With: map[string]string{}}
	for i := 0; i+1 < len(with); i += 2 {
		s.With[with[i]] = with[i+1]
	}
	return s
}

const configurationObject = "configmaps/" + act.System + "/" + act.Configuration

// restarts counts what the oracle takes for restarts by the program.
func restarts(t *testing.T, flags []string, steps ...history.Step) int {
	t.Helper()
	h := history.History{Form: history.Form, Seed: 1, Setup: history.Setup{Replicas: 2, Flags: flags}, Steps: steps}
	require.NoError(t, Catalogue().Check(h))
	o := runner(t)(h)
	assert.Empty(t, o.Violations, words(h, o.Violations))
	return o.Judged["restarts"]
}

func TestCustomKindIsLookedAfterWhereItIsConfigured(t *testing.T) {
	t.Parallel()
	create, edit := step(act.CreateRollout, act.Rollout), step("edit-config", "secrets/shop/db", "key", "user", "value", "v1")
	others := restarts(t, nil, edit)
	require.Positive(t, others)
	for name, tt := range map[string]struct {
		flags []string
		steps []history.Step
		more  int
	}{
		"nowhere":              {nil, []history.Step{create, edit}, 0},
		"flags":                {[]string{customKind}, []history.Step{create, edit}, 1},
		"no configuration":     {[]string{configMapFlag}, []history.Step{create, edit}, 0},
		"configuration":        {[]string{configMapFlag}, []history.Step{step(act.WriteConfiguration, configurationObject, "says", "rollouts"), create, edit}, 1},
		"broken configuration": {[]string{configMapFlag}, []history.Step{create, step(act.WriteConfiguration, configurationObject, "says", "wrong path"), edit}, 0},
		"last valid configuration": {[]string{configMapFlag}, []history.Step{
			create, step(act.WriteConfiguration, configurationObject, "says", "rollouts"), step(act.DeleteConfiguration, configurationObject), edit,
		}, 1},
		"upgrade":      {nil, []history.Step{create, step("reconfigure", "", "flags", customKind, "for", "30s"), step("opt-out", "cronjobs/shop/nightly"), step("opt-in", "cronjobs/shop/nightly"), edit}, 1},
		"restart-with": {[]string{customKind}, []history.Step{create, step("restart-with", "replica-0", "flags", "--workers=1", "for", "1s"), edit}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, others+tt.more, restarts(t, tt.flags, tt.steps...))
		})
	}
}

// The webhook is asked about every workload then: a release by a manifest without annotations takes no stamp away.
func TestEveryWorkloadIsAutomaticWhereTheFlagSaysSo(t *testing.T) {
	t.Parallel()
	out, edit := step("opt-out-put", "deployments/bank/cart"), step("edit-config", "configmaps/bank/extra", "key", "level", "value", "v1")
	again := step("edit-config", "configmaps/bank/extra", "key", "level", "value", "v2")
	put := step("opt-out-put", "deployments/bank/cart")
	assert.Zero(t, restarts(t, nil, out, edit, put, again))
	assert.Equal(t, 2, restarts(t, []string{autoFlag}, out, edit, put, again))
}

func TestScopeChangesByAnUpgrade(t *testing.T) {
	t.Parallel()
	edit := step("edit-config", "secrets/bank/db", "key", "user", "value", "v1")
	later := step("label-config", "secrets/bank/db", "value", "a")
	require.Equal(t, 1, restarts(t, nil, edit), "deployments/bank/cart")
	for name, tt := range map[string]struct {
		flags string
		want  int
	}{
		"namespaces":                {"--namespaces=shop", 0},
		"namespaces with this one":  {"--namespaces=shop,bank", 1},
		"namespace selector":        {"--namespace-selector=team=shop", 0},
		"object selector":           {"--object-selector=app=none", 0},
		"object selector that fits": {"--object-selector=app", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upgrade := step("reconfigure", "", "flags", tt.flags, "for", "30s")
			assert.Equal(t, tt.want, restarts(t, nil, upgrade, later, later, edit))
			back := step("reconfigure", "", "flags", "", "for", "30s")
			assert.Equal(t, 1, restarts(t, nil, upgrade, later, later, edit, back, later, later), "what was missed comes late")
			assert.Equal(t, tt.want, restarts(t, []string{tt.flags}, edit, back, later, later), "what was never seen is adopted as it is")
		})
	}
}

func TestDrawnActsFitTheInstallation(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	custom := 0
	for seed := range uint64(200) {
		h := Draw(seed, DrawOptions{Steps: 30})
		wanted := false
		for _, flag := range h.Setup.Flags {
			wanted = wanted || flag == customKind || flag == configMapFlag || strings.HasPrefix(flag, argoFlag)
		}
		for _, s := range h.Steps {
			if s.Do == act.CreateRollout || s.Do == act.WriteConfiguration {
				assert.True(t, wanted, "seed %d", seed)
				custom++
			}
		}
		for _, s := range Draw(seed, DrawOptions{Steps: 30, BuiltinKinds: true}).Steps {
			assert.NotEqual(t, act.CreateRollout, s.Do)
		}
	}
	assert.Greater(t, custom, 20)
}
