package simulate

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScopeIsReadFromTheFlags(t *testing.T) {
	t.Parallel()
	type labelled = map[string]string
	for name, tt := range map[string]struct {
		flags         []string
		namespace     string
		of, object    labelled
		want          bool
		because, fail string
	}{
		"no flags":                        {namespace: "shop", want: true, because: "all but kube-system"},
		"kube-system":                     {namespace: "kube-system", because: "nothing names it"},
		"kube-system named":               {flags: []string{"--namespaces=kube-system"}, namespace: "kube-system", want: true, because: "it is named"},
		"named":                           {flags: []string{"--namespaces=shop,bank"}, namespace: "bank", want: true, because: "a list"},
		"named by another flag":           {flags: []string{"--namespaces=shop", "--namespaces=bank"}, namespace: "shop", want: true, because: "it is repeated"},
		"not named":                       {flags: []string{"--namespaces=shop"}, namespace: "bank", because: "only those"},
		"ignored":                         {flags: []string{"--namespaces-to-ignore=bank"}, namespace: "bank", because: "it is ignored"},
		"ignored and named":               {flags: []string{"--namespaces=bank", "--namespaces-to-ignore=bank"}, namespace: "bank", because: "whatever else selects it"},
		"labels of the namespace":         {flags: []string{"--namespace-selector=team=shop"}, namespace: "shop", of: labelled{"team": "shop"}, want: true, because: "they match"},
		"other labels of the namespace":   {flags: []string{"--namespace-selector=team"}, namespace: "shop", because: "no such label"},
		"labels of the object":            {flags: []string{"--object-selector=note!=b"}, namespace: "shop", object: labelled{"note": "a"}, want: true, because: "they match"},
		"other labels of the object":      {flags: []string{"--object-selector=note!=b"}, namespace: "shop", object: labelled{"note": "b"}, because: "they do not match"},
		"labels of the object, not of it": {flags: []string{"--object-selector=team"}, namespace: "shop", of: labelled{"team": "shop"}, because: "the namespace's do not count"},
		"no selector":                     {flags: []string{"--object-selector=="}, fail: "--object-selector", because: "it cannot be parsed"},
		"no flag":                         {flags: []string{"-v"}, fail: "want --name=value", because: "histories have it so"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scope, err := scopeOf(tt.flags)
			if tt.fail != "" {
				require.ErrorContains(t, err, tt.fail, tt.because)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, scope.InScope(tt.namespace, tt.of, tt.object), tt.because)
		})
	}
}

func TestKindsAreReadFromTheFlags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags   []string
		custom  bool
		ignored []string
	}{
		"none":                  {},
		"Argo Rollouts":         {flags: []string{argoFlag}, custom: true},
		"as in Reloader 2":      {flags: []string{argoFlag + "=True"}, custom: true},
		"a number":              {flags: []string{argoFlag + "=1"}, custom: true},
		"no such value":         {flags: []string{argoFlag + "=yes"}},
		"empty":                 {flags: []string{argoFlag + "="}},
		"on, then off":          {flags: []string{argoFlag, argoFlag + "=false"}},
		"off, but named":        {flags: []string{argoFlag + "=false", customKind}, custom: true},
		"without Jobs":          {flags: []string{ignoredFlag + "=jobs"}, ignored: []string{"jobs"}},
		"in the case of a kind": {flags: []string{ignoredFlag + "=Jobs,CronJobs"}, ignored: []string{"jobs", "cronjobs"}},
		"repeated":              {flags: []string{ignoredFlag + "=cronjobs", ignoredFlag + "=jobs"}, ignored: []string{"cronjobs", "jobs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scope, err := scopeOf(tt.flags)
			require.NoError(t, err)
			rules, err := rulesOf(tt.flags)
			require.NoError(t, err)
			assert.Equal(t, tt.custom, scope.CustomKind)
			assert.Equal(t, tt.custom, rules.CustomKind)
			assert.Equal(t, tt.ignored, scope.Ignored)
			assert.Equal(t, tt.ignored, rules.Ignored)
		})
	}
}

func TestHiddenObjectsAreReadFromTheFlags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags         []string
		kinds, others []string
		a, b          bool
		fail          string
	}{
		"none":               {a: true, b: true},
		"no Secrets":         {flags: []string{"--secrets=false"}, kinds: []string{"secrets"}, a: true, b: true},
		"off, then on":       {flags: []string{"--secrets=false", "--secrets"}, a: true, b: true},
		"both kinds":         {flags: []string{untrackedFlag + "=configmaps,secrets"}, others: []string{"configmaps", "secrets"}, a: true, b: true},
		"repeated":           {flags: []string{untrackedFlag + "=secrets", untrackedFlag + "=configmaps"}, others: []string{"secrets", "configmaps"}, a: true, b: true},
		"no dialect":         {flags: []string{dialectFlag + "=false"}, others: []string{"configmaps", "secrets"}, a: true, b: true},
		"labels":             {flags: []string{labelledFlag + "=note!=b"}, a: true},
		"cannot be parsed":   {flags: []string{labelledFlag + "=="}, fail: labelledFlag},
		"neither on nor off": {flags: []string{"--secrets=some"}, fail: "--secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, err := rulesOf(tt.flags)
			if tt.fail != "" {
				require.ErrorContains(t, err, tt.fail)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.kinds, rules.Hidden.Kinds)
			assert.Equal(t, tt.others, rules.Hidden.Others)
			selects := func(note string) bool {
				return rules.Hidden.Labels == nil || rules.Hidden.Labels(map[string]string{"note": note})
			}
			assert.Equal(t, [2]bool{tt.a, tt.b}, [2]bool{selects("a"), selects("b")})
		})
	}
}

func TestPrefixIsReadFromTheFlags(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"":                        "pod-reloader.cs.sap.com/",
		prefixFlag + "a.example/": "a.example/",
		prefixFlag + "a.example":  "a.example/",
		prefixFlag + "a.example " + prefixFlag + "b": "b/",
	} {
		rules, err := rulesOf(splitFlags(flags))
		require.NoError(t, err)
		assert.Equal(t, want, rules.Prefix, flags)
	}
}

func TestRulesAreReadFromTheFlags(t *testing.T) {
	t.Parallel()
	plain, err := rulesOf(nil)
	require.NoError(t, err)
	assert.Equal(t, [3]time.Duration{time.Second, 5 * time.Second, 5 * time.Second}, [3]time.Duration{plain.Settle, plain.SettleMax, plain.Refractory})
	assert.False(t, plain.Direct, "direct mode is asked for")
	assert.Empty(t, plain.Strategy, "only the hash is written")
	assert.Empty(t, plain.Configuration.Name)

	all, err := rulesOf([]string{
		"--settle=3s", "--settle=2s", "--settle-max=8s", "--refractory=20s", directFlag, rerunFlag, autoFlag, createFlag, deleteFlag, strategyFlag + "env-vars", customKind,
		configMapFlag, "--missing-required=reload", "--hash=revision", "--leader-election-retry-period=4s",
	})
	require.NoError(t, err)
	assert.Equal(t, [3]time.Duration{2 * time.Second, 8 * time.Second, 20 * time.Second}, [3]time.Duration{all.Settle, all.SettleMax, all.Refractory})
	assert.True(t, all.Direct, "--direct is given")
	assert.NotContains(t, []bool{
		all.RerunFinished, all.AutoReloadAll, all.ReloadOnCreate, all.ReloadOnDelete, all.CustomKind, all.ReloadMissingRequired, all.Revision,
	}, false)
	assert.Equal(t, "env-vars", all.Strategy)
	assert.Equal(t, 4*time.Second, all.Retry)
	assert.Equal(t, configurationObject, all.Configuration.String())

	_, err = rulesOf([]string{"--refractory=long"})
	require.ErrorContains(t, err, "--refractory")
}

// The oracle judges the program by what is documented, and by none of its code.
func TestOracleImportsNothingOfTheProgram(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./oracle").Output()
	require.NoError(t, err)
	const module = "github.com/pod-reloader/pod-reloader/"
	for dependency := range strings.Lines(string(output)) {
		if inside, ours := strings.CutPrefix(strings.TrimSpace(dependency), module); ours {
			assert.True(t, strings.HasPrefix(inside, "e2e/"), inside)
		}
	}
}
