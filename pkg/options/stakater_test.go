package options_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestStakaterFlags(t *testing.T) {
	t.Parallel()
	s := complete(t).Selection.Stakater
	require.NotNil(t, s.Patterns)
	s.Patterns = nil
	assert.Equal(t, annotation.Stakater{Keys: annotation.NewStakaterKeys()}, s, "Reloader's defaults")

	s = complete(t, "--auto-reload-all=true", "--reload-on-create=true", "--reload-on-delete", "--resources-to-ignore=configMaps",
		"--resources-to-ignore", "secrets", "--auto-annotation", "x/auto", "--configmap-auto-annotation=x/cma", "--secret-auto-annotation=x/sa",
		"--configmap-annotation=x/cm", "--secret-annotation=x/s", "--auto-search-annotation=x/search", "--search-match-annotation=x/match",
		"--ignore-annotation=x/ignore", "--configmap-exclude-annotation=x/cme", "--secret-exclude-annotation=x/se",
		"--secretproviderclass-annotation", "x/c", "--secretproviderclass-auto-annotation=x/ca", "--secretproviderclass-exclude-annotation=x/ce",
		"--enable-csi-integration=true",
		"--pause-deployment-annotation", "x/pause", "--pause-deployment-time-annotation=x/paused").Selection.Stakater
	s.Patterns = nil
	keys := annotation.NewStakaterKeys()
	keys.Auto, keys.Search, keys.Match, keys.Ignore = "x/auto", "x/search", "x/match", "x/ignore"
	keys.ConfigMap.Auto, keys.ConfigMap.Reload, keys.Secret.Auto, keys.Secret.Reload = "x/cma", "x/cm", "x/sa", "x/s"
	keys.ConfigMap.Exclude, keys.Secret.Exclude, keys.PausePeriod, keys.PausedAt = "x/cme", "x/se", "x/pause", "x/paused"
	keys.SecretProviderClass = annotation.StakaterKindKeys{Reload: "x/c", Auto: "x/ca", Exclude: "x/ce"}
	assert.Equal(t, annotation.Stakater{
		Keys: keys, AutoReloadAll: true, ReloadOnCreate: true, ReloadOnDelete: true, SecretProviderClasses: true,
		Without: []reference.Kind{reference.ConfigMap, reference.Secret},
	}, s)

	for _, tc := range []struct {
		arguments []string
		matches   labels.Set
		not       labels.Set
	}{
		{[]string{"--resource-label-selector=env=test"}, labels.Set{"env": "test"}, labels.Set{"env": "prod"}},
		{[]string{`--resource-label-selector="env=test"`}, labels.Set{"env": "test"}, labels.Set{"env": "prod"}},
		{[]string{"--resource-label-selector", "env in (a,b),!old"}, labels.Set{"env": "b"}, labels.Set{"env": "b", "old": ""}},
		{[]string{"--resource-label-selector=env:test", "--resource-label-selector=team:*"}, labels.Set{"env": "test", "team": "x"}, labels.Set{"env": "test"}},
		{[]string{"--resource-label-selector=team=*"}, labels.Set{"team": "x"}, labels.Set{}},
		{[]string{`--resource-label-selector="env:test,team:*"`}, labels.Set{"env": "test", "team": "x"}, labels.Set{"env": "test"}},
		{[]string{`--resource-label-selector="env in (a,b), team:*"`}, labels.Set{"env": "b", "team": "x"}, labels.Set{"env": "c", "team": "x"}},
	} {
		selector := complete(t, tc.arguments...).Selection.Stakater
		require.NotNil(t, selector.Selector, tc.arguments)
		assert.True(t, selector.Selector.Matches(tc.matches), tc.arguments)
		assert.False(t, selector.Selector.Matches(tc.not), tc.arguments)
		for key := range tc.matches {
			assert.True(t, selector.LooksAt(key), "the cache keeps the label")
		}
	}
	assert.False(t, s.LooksAt("env"), "no selector has this label")

	flags := options.NewFlags()
	require.NoError(t, flags.Parse([]string{"--ignore-annotation=a b", "--resources-to-ignore=pods", "--resource-label-selector=a=b=c"}))
	_, err := flags.Complete(in("tools"))
	require.ErrorContains(t, err, `--ignore-annotation: "a b" is no name of an annotation`)
	require.ErrorContains(t, err, `--resource-label-selector: "a=b=c" is not a label selector`)
	require.ErrorContains(t, err, `--resources-to-ignore: "pods": want configmaps or secrets`)
}

func TestReloadStrategy(t *testing.T) {
	t.Parallel()
	assert.Equal(t, annotation.ConfigHash, complete(t).Reload.Strategy)
	for value, want := range map[string]annotation.ReloadStrategy{
		"config-hash": annotation.ConfigHash, "annotations": annotation.Annotations, "env-vars": annotation.EnvVars,
		"default": annotation.EnvVars,
	} {
		assert.Equal(t, want, complete(t, "--reload-strategy="+value).Reload.Strategy, value)
	}
	flags := options.NewFlags()
	require.NoError(t, flags.Parse([]string{"--reload-strategy=env"}))
	_, err := flags.Complete(in("tools"))
	require.ErrorContains(t, err, `--reload-strategy: "env": want config-hash or annotations or env-vars`)
}

func TestEnvVarsHash(t *testing.T) {
	t.Parallel()
	assert.False(t, complete(t).PlainSecrets, "hashes of Secrets are keyed by default")
	assert.True(t, complete(t, "--env-vars-hash=sha1").PlainSecrets, "--env-vars-hash=sha1 is the hash of Reloader")
	flags := options.NewFlags()
	require.NoError(t, flags.Parse([]string{"--env-vars-hash=md5"}))
	_, err := flags.Complete(in("tools"))
	require.ErrorContains(t, err, `--env-vars-hash: "md5": want keyed or sha1`)
}
