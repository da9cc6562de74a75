package options_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
)

// with is an environment with these variables.
func with(variables map[string]string) options.Environment {
	return options.Environment{Getenv: func(key string) string { return variables[key] }, ServiceAccountNamespace: "testdata/none"}
}

// completeIn completes flags in an environment.
func completeIn(t *testing.T, variables map[string]string, args ...string) (options.Options, error) {
	t.Helper()
	flags := options.NewFlags()
	require.NoError(t, flags.Parse(args))
	return flags.Complete(with(variables))
}

// The arguments and variables are those that Reloader's chart renders, as it writes them.
func TestArgumentsOfReloadersChart(t *testing.T) {
	t.Parallel()
	o, err := completeIn(t, map[string]string{
		"GOMAXPROCS": "1", "RELOADER_NAMESPACE": "tools", "RELOADER_DEPLOYMENT_NAME": "reloader-reloader",
		"METRICS_COUNT_BY_NAMESPACE": "enabled", "POD_NAME": "other-7d9f8b6c5d-x2x4z",
	},
		"--log-format=json", "--log-level=warning", "--resources-to-ignore=secrets", "--ignored-workload-types=jobs,cronjobs",
		"--namespaces-to-ignore=default,tools", `--namespace-selector="env=test"`, `--resource-label-selector="app=x,team:*"`,
		"--auto-annotation", "x.org/auto", "--pause-deployment-annotation", "x.org/pause", "--is-Argo-Rollouts=true",
		"--reload-on-create=true", "--reload-on-delete", "true", "--sync-after-restart=true", "--reload-strategy=annotations",
		"--enable-ha=true", "--auto-reload-all=true", "--enable-pprof", "--pprof-addr", ":6061", "--enable-csi-integration=false",
		"--rerun-finished-jobs")
	require.NoError(t, err)
	assert.True(t, o.Reload.RerunFinishedJobs, "Reloader always does so")
	assert.False(t, o.Reload.WithoutRuns, "Reloader runs CronJobs wherever it has the permission")
	assert.Equal(t, "tools", o.Namespace)
	assert.Equal(t, "reloader-reloader", o.Installation)
	assert.Equal(t, ":9090", o.Servers.MetricsAddress, "the chart probes it")
	assert.Equal(t, ":6061", o.Servers.PprofAddress)
	assert.Equal(t, options.Election{Enabled: true, Namespace: "tools", Lease: "reloader-reloader", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second}, o.Election)
	assert.True(t, o.Reload.CountByNamespace, "METRICS_COUNT_BY_NAMESPACE is enabled")
	assert.Equal(t, annotation.Annotations, o.Reload.Strategy)
	s := o.Selection
	assert.True(t, s.Stakater.ReloadOnCreate, "an argument of the chart switches it on")
	assert.True(t, s.Stakater.ReloadOnDelete, "an argument of the chart switches it on")
	assert.Equal(t, "x.org/auto", s.Stakater.Keys.Auto)
	assert.Equal(t, []string{
		"apps.openshift.io/v1/DeploymentConfig=spec.template",
		"apps/v1/DaemonSet=spec.template", "apps/v1/Deployment=spec.template", "apps/v1/StatefulSet=spec.template",
		"argoproj.io/v1alpha1/Rollout=spec.template",
	}, kindsOf(o))
	assert.True(t, s.Scope.Namespace("shop", map[string]string{"env": "test"}), "the selector matches its labels")
	assert.False(t, s.Scope.Namespace("shop", nil), "the selector does not match without labels")
	assert.False(t, s.Scope.Namespace("tools", map[string]string{"env": "test"}), "the namespace is ignored")
}

func kindsOf(o options.Options) []string {
	var kinds []string
	for _, kind := range o.Selection.Kinds.All() {
		kinds = append(kinds, kind.String())
	}
	return kinds
}

func TestKubernetesNamespaceIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		variable string
		args     []string
		want     scope.Scope
		problem  string
	}{
		"all":       {"without it", "", nil, scope.Scope{}, ""},
		"one":       {"Reloader's watchGlobally=false; it may be the installation's own", "tools", nil, scope.Scope{Namespaces: []string{"tools"}}, ""},
		"flag":      {"as in Reloader", "tools", []string{"--namespaces=shop"}, scope.Scope{Namespaces: []string{"shop"}}, ""},
		"invalid":   {"no namespace has that name", "A", nil, scope.Scope{}, `environment variable KUBERNETES_NAMESPACE: "A" is not a valid namespace name`},
		"ignored":   {"an empty list would mean all", "tools", []string{"--namespaces-to-ignore=tools"}, scope.Scope{}, "--namespaces-to-ignore: no namespace is left"},
		"partly":    {"the others are left", "", []string{"--namespaces=a,b", "--namespaces-to-ignore= b"}, scope.Scope{Namespaces: []string{"a"}, Ignored: []string{"b"}}, ""},
		"not valid": {"it is a mistake", "", []string{"--namespaces-to-ignore=B"}, scope.Scope{}, `--namespaces-to-ignore: "B" is not a valid`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := completeIn(t, map[string]string{"POD_NAMESPACE": "tools", "KUBERNETES_NAMESPACE": tt.variable}, tt.args...)
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem, tt.reason)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.want, o.Selection.Scope, tt.reason)
		})
	}
}

// plan goes on with what is wrong, and an empty list would mean all namespaces.
func TestScopeIsEmptyWhereNoNamespaceIsLeft(t *testing.T) {
	t.Parallel()
	flags := options.NewFlags()
	require.NoError(t, flags.Parse([]string{"--namespaces=shop", "--namespaces-to-ignore=shop"}))
	selection, _, err := flags.CompleteShared(in("tools"))
	require.ErrorContains(t, err, "no namespace is left")
	assert.False(t, selection.Scope.Namespace("shop", nil), "it is ignored")
	assert.False(t, selection.Scope.Namespace("bank", nil), "it is not in --namespaces")
	assert.Equal(t, []string{"shop"}, flags.NamedNamespaces(in("tools")))
}

// A flag of Reloader that cannot be honoured is refused with what to do instead.
func TestUnsupportedFlagsOfReloaderSayWhatToDo(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"--alert-sink=slack":         "ALERT_SINK",
		"--alert-proxy=http://proxy": "ALERT_WEBHOOK_PROXY",
		"--alert-structured=true":    "remove the flag",
		"--watch-namespace=shop":     "--namespaces",
	}
	for arg, want := range tests {
		t.Run(arg, func(t *testing.T) {
			t.Parallel()
			err := options.NewFlags().Parse([]string{arg})
			require.ErrorContains(t, err, "not supported: ")
			require.ErrorContains(t, err, want)
		})
	}
	completed := map[string]string{
		"--ignored-workload-types=pods":  `--ignored-workload-types: "pods": want jobs or cronjobs`,
		"--namespace-selector=a=b=c":     `--namespace-selector: "a=b=c" is not a label selector`,
		"--namespace-selector=env:a,b=*": "",
	}
	for arg, want := range completed {
		_, err := completeIn(t, map[string]string{"POD_NAMESPACE": "tools"}, arg)
		if want == "" {
			require.NoError(t, err, arg)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// These are the names that version 2 of Reloader has.
func TestProcessFlagsOfReloader(t *testing.T) {
	t.Parallel()
	o := complete(t, "--metrics-addr=:9090", "--health-addr", ":8082", "--leader-election-id=reloader-leader-election",
		"--leader-election-release-on-cancel=true", "--enable-ha=true")
	assert.Equal(t, ":9090", o.Servers.MetricsAddress)
	assert.Equal(t, ":8082", o.Servers.ProbeAddress)
	assert.Equal(t, "reloader-leader-election", o.Election.Lease, "its Role names the lease")
	assert.Equal(t, "pod-reloader", o.Installation)
	o, err := completeIn(t, map[string]string{"RELOADER_DEPLOYMENT_NAME": "reloader", "RELOADER_NAMESPACE": "tools"}, "--metrics-addr=:9191")
	require.NoError(t, err)
	assert.Equal(t, ":9191", o.Servers.MetricsAddress, "also where the default is another one")
	assert.Equal(t, "second", complete(t, "--installation-name=second").Election.Lease)
	_, err = completeIn(t, map[string]string{"POD_NAMESPACE": "tools"}, "--leader-election-id=A b")
	require.ErrorContains(t, err, "--leader-election-id: ")
}

// Outside of a cluster, Reloader needs a kubeconfig only.
func TestNamespaceOfTheKubeconfig(t *testing.T) {
	t.Parallel()
	of := func(namespace string, err error) options.Environment {
		environment := with(nil)
		environment.ContextNamespace = func(kubeconfig string) (string, error) {
			assert.Equal(t, "testdata/kubeconfig", kubeconfig)
			return namespace, err
		}
		return environment
	}
	flags := options.NewFlags()
	require.NoError(t, flags.Parse([]string{"--kubeconfig=testdata/kubeconfig"}))
	o, err := flags.Complete(of("team-a", nil))
	require.NoError(t, err)
	assert.Equal(t, "team-a", o.Namespace)
	_, err = flags.Complete(of("", assert.AnError))
	require.ErrorContains(t, err, "--namespace: needed outside of a cluster")
	require.ErrorIs(t, err, assert.AnError, "why the kubeconfig has none")
	_, err = flags.Complete(of("A", nil))
	require.ErrorContains(t, err, `--namespace: "A" is not a valid namespace name`)
}

func TestDeploymentConfigsOfOpenShift(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		args   []string
		want   bool
	}{
		"default": {reason: "they need permissions, which are not granted by default"},
		"true":    {"of Reloader", []string{"--is-openshift=true"}, true},
		"bare":    {"a flag without a value", []string{"--is-openshift", "--enable-ha"}, true},
		"second":  {"a text in Reloader", []string{"--is-openshift", "true"}, true},
		"false":   {"of Reloader", []string{"--is-openshift", "false"}, false},
		"auto":    {"Reloader looks whether the cluster has them", []string{"--is-openshift=auto"}, true},
		"empty":   {"the same as auto in Reloader", []string{"--is-openshift="}, true},
		"twice":   {"by either flag", []string{"--is-openshift", "--workload-kinds=apps.openshift.io/v1/DeploymentConfig=spec.template"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds := slices.DeleteFunc(kindsOf(complete(t, tt.args...)), func(kind string) bool { return !strings.HasPrefix(kind, "apps.openshift.io/") })
			want := []string{"apps.openshift.io/v1/DeploymentConfig=spec.template"}
			if !tt.want {
				want = []string{}
			}
			assert.Equal(t, want, kinds, tt.reason)
		})
	}
	inPlace := map[string]string{"POD_NAMESPACE": "tools", "RELOADER_DEPLOYMENT_NAME": "reloader-reloader"}
	for value, args := range map[string][]string{"": nil, "false": {"--is-openshift=false"}} {
		o, err := completeIn(t, inPlace, args...)
		require.NoError(t, err)
		_, handled := o.Selection.Kinds.Get(schema.GroupVersionKind{Group: "apps.openshift.io", Version: "v1", Kind: "DeploymentConfig"})
		assert.Equal(t, value == "", handled, "in the place of Reloader, which looks whether the cluster has them; --is-openshift=%s", value)
	}
}

func TestStakaterAnnotationsOff(t *testing.T) {
	t.Parallel()
	key := annotation.NewStakaterKeys().Auto
	on, off := complete(t).Selection, complete(t, "--stakater-annotations=false").Selection
	assert.Len(t, on.Dialects(options.Referents{}), 2)
	assert.True(t, on.HasStakater(key), "the annotation is read by default")
	assert.True(t, on.Marks([]byte("reloader.stakater.com/match"), []byte("true")), "the annotation marks an object")
	assert.False(t, on.Marks([]byte("reloader.stakater.com/match"), []byte("false")), "the value is false")
	assert.False(t, off.Marks([]byte("reloader.stakater.com/match"), []byte("true")), "annotations of Reloader are off")
	assert.Len(t, off.Dialects(options.Referents{}), 1)
	assert.False(t, off.HasStakater(key), "annotations of Reloader are off")
	_, err := completeIn(t, map[string]string{"POD_NAMESPACE": "tools"}, "--stakater-annotations=false", "--auto-reload-all")
	require.ErrorContains(t, err, "--auto-reload-all: has no effect with --stakater-annotations=false")
}

func TestSAPDialectKnowsWhatIsNotHandled(t *testing.T) {
	t.Parallel()
	check := func(reference.Kind) error { return assert.AnError }
	sap, ok := complete(t, "--secrets=false", "--resources-to-ignore=secrets").Selection.Dialects(options.Referents{Resource: check})[0].(annotation.SAP)
	require.True(t, ok, "the first dialect is that of SAP")
	assert.True(t, sap.WithoutSecrets, "--secrets=false")
	assert.Equal(t, assert.AnError, sap.Resource("proxies.example.org"))
}

func TestLogLevelsOfReloader(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]zapcore.Level{
		"trace": -2, "debug": zapcore.DebugLevel, "Info": zapcore.InfoLevel, "warning": zapcore.WarnLevel,
		"error": zapcore.ErrorLevel, "fatal": zapcore.FatalLevel, "panic": zapcore.PanicLevel,
	} {
		sink := complete(t, "--log-level", level, "--log-format=").Logging
		assert.True(t, sink.Enabled(want), level)
		assert.False(t, sink.Enabled(want-1), level)
	}
}

func TestMetricsByNamespaceIsASwitch(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"": false, "enabled": true, "disabled": false} {
		o, err := completeIn(t, map[string]string{"POD_NAMESPACE": "tools", "METRICS_COUNT_BY_NAMESPACE": value})
		require.NoError(t, err)
		assert.Equal(t, want, o.Reload.CountByNamespace, value)
		assert.Equal(t, ":8080", o.Servers.MetricsAddress, "not in a pod of Reloader's chart")
	}
}

// Reloader takes these as texts, so that they may be written as two arguments.
func TestBooleanAsASecondArgument(t *testing.T) {
	t.Parallel()
	s := complete(t, "--reload-on-create", "true", "--reload-on-delete", "false", "--auto-reload-all", "--enable-ha").Selection.Stakater
	assert.True(t, s.ReloadOnCreate, "the argument that follows is true")
	assert.False(t, s.ReloadOnDelete, "the argument that follows is false")
	assert.True(t, s.AutoReloadAll, "no argument follows")
}

func TestVariablesAreExplained(t *testing.T) {
	t.Parallel()
	for _, v := range options.Variables() {
		assert.NotEmpty(t, v.Usage, v.Name)
	}
}
