package options_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// handles returns whether options handle workloads of a kind.
func handles(group, version, kind string) func(options.Options) bool {
	return func(o options.Options) bool {
		_, ok := o.Selection.Kinds.Get(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		return ok
	}
}

// outcome is what becomes of a value of a flag.
type outcome string

const (
	on, off outcome = "on", "off"
	// warned is off, with a warning.
	warned outcome = "off, with a warning"
	// refused is a wrong usage.
	refused outcome = "refused"
)

// What Reloader has as a text starts with any value; what it has as a boolean is refused there, too.
func TestValuesOfReloadersSwitches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		on     func(options.Options) bool
		want   map[string]outcome
	}{
		"reload-on-create": {"a text in Reloader", func(o options.Options) bool { return o.Selection.Stakater.ReloadOnCreate }, text(off)},
		"reload-on-delete": {"a text in Reloader", func(o options.Options) bool { return o.Selection.Stakater.ReloadOnDelete }, text(off)},
		"is-Argo-Rollouts": {"a text in Reloader", handles("argoproj.io", "v1alpha1", "Rollout"), text(off)},
		"is-openshift":     {"a text in Reloader, which looks at the cluster for an empty one", handles("apps.openshift.io", "v1", "DeploymentConfig"), text(on)},

		"auto-reload-all": {"a boolean in Reloader", func(o options.Options) bool { return o.Selection.Stakater.AutoReloadAll }, boolean()},
		"enable-ha":       {"a boolean in Reloader", func(o options.Options) bool { return o.Election.Enabled }, boolean()},
		"enable-pprof":    {"a boolean in Reloader", func(o options.Options) bool { return o.Servers.PprofAddress != "0" }, boolean()},
		"enable-csi-integration": {
			"a boolean in Reloader",
			func(o options.Options) bool { return o.Selection.Stakater.SecretProviderClasses }, boolean(),
		},
		"sync-after-restart":                {"a boolean in Reloader; it has no effect", nil, boolean()},
		"leader-election-release-on-cancel": {"a boolean in Reloader; it has no effect", nil, boolean()},
	}
	for name, tt := range tests {
		for value, want := range tt.want {
			t.Run(name+"="+value, func(t *testing.T) {
				t.Parallel()
				flags := options.NewFlags()
				err := flags.Parse([]string{"--" + name + "=" + value})
				if want == refused {
					require.EqualError(t, err, "--"+name+`: "`+value+`": want true or false`, tt.reason)
					return
				}
				require.NoError(t, err, tt.reason)
				o, err := flags.Complete(in("tools"))
				require.NoError(t, err, tt.reason)
				if tt.on != nil {
					assert.Equal(t, want == on, tt.on(o), tt.reason)
				}
				requireWarning(t, flags.Warnings(in("tools")), want, "--"+name+`: "`+value+`" is neither true nor false`)
			})
		}
	}
}

// text is what becomes of the values of a flag that is a text in Reloader.
func text(empty outcome) map[string]outcome {
	return map[string]outcome{
		"true": on, "false": off, "True": on, "TRUE": on, "1": on, "0": off, " true ": on,
		"": empty, "maybe": warned, "yes": warned, `"true"`: warned, "<no value>": warned,
	}
}

// boolean is what becomes of the values of a flag that is a boolean in Reloader.
func boolean() map[string]outcome {
	return map[string]outcome{"true": on, "false": off, "True": on, "TRUE": on, "1": on, "0": off, "": refused, "maybe": refused}
}

func requireWarning(t *testing.T, warnings []error, want outcome, message string) {
	t.Helper()
	if want != warned {
		require.Empty(t, warnings)
		return
	}
	require.Len(t, warnings, 1)
	assert.Contains(t, strings.ReplaceAll(warnings[0].Error(), `\"`, `"`), message)
	assert.Contains(t, warnings[0].Error(), ": write ", "it says what to do")
}

func TestValuesOfReloadersVariables(t *testing.T) {
	t.Parallel()
	alerts := func(o options.Options) bool { return o.Alerts != nil }
	byNamespace := func(o options.Options) bool { return o.Reload.CountByNamespace }
	tests := map[string]struct {
		on   func(options.Options) bool
		want map[string]outcome
	}{
		"ALERT_ON_RELOAD": {alerts, map[string]outcome{
			"true": on, "false": off, "True": on, "TRUE": on, "1": on, "": off, "maybe": warned, "https://hooks.example/token": warned,
		}},
		"METRICS_COUNT_BY_NAMESPACE": {byNamespace, map[string]outcome{
			"enabled": on, "disabled": off, "": off, "true": warned, "Enabled": warned, "maybe": warned,
		}},
	}
	for name, tt := range tests {
		for value, want := range tt.want {
			t.Run(name+"="+value, func(t *testing.T) {
				t.Parallel()
				variables := map[string]string{"POD_NAMESPACE": "tools", "ALERT_WEBHOOK_URL": "https://chat.example/hook", name: value}
				o, err := completeIn(t, variables)
				require.NoError(t, err, "Reloader starts with any value")
				assert.Equal(t, want == on, tt.on(o))
				warnings := options.NewFlags().Warnings(with(variables))
				requireWarning(t, warnings, want, "environment variable "+name+": ")
				for _, warning := range warnings {
					assert.NotContains(t, warning.Error(), "token", "variables of alerts come from a Secret")
				}
			})
		}
	}
}

// Reloader starts with any format and level, and logs text at info where it does not know the value.
func TestUnknownValuesOfLoggingHaveTheirDefault(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		json    bool
		level   zapcore.Level
		warning string
	}{
		"--log-format=JSON":    {"case does not matter", true, zapcore.InfoLevel, ""},
		"--log-format=Text":    {"case does not matter", false, zapcore.InfoLevel, ""},
		"--log-format=":        {"the default of Reloader's chart", true, zapcore.InfoLevel, ""},
		"--log-format=logfmt":  {"no format", true, zapcore.InfoLevel, `--log-format: "logfmt" is neither json nor text, and has the effect of json`},
		"--log-level=":         {"Reloader stays at info", true, zapcore.InfoLevel, ""},
		"--log-level= DEBUG ":  {"case does not matter", true, zapcore.DebugLevel, ""},
		"--log-level=loud":     {"Reloader stays at info", true, zapcore.InfoLevel, `--log-level: "loud" is no level, and has the effect of info`},
		"--log-level=-1":       {"numbers are above 0", true, zapcore.InfoLevel, `--log-level: "-1" is no level, and has the effect of info`},
		"--log-level=verbose1": {"no number", true, zapcore.InfoLevel, `--log-level: "verbose1" is no level, and has the effect of info`},
	}
	for arg, tt := range tests {
		t.Run(arg, func(t *testing.T) {
			t.Parallel()
			flags := options.NewFlags()
			require.NoError(t, flags.Parse([]string{arg}))
			o, err := flags.Complete(in("tools"))
			require.NoError(t, err, tt.reason)
			assert.True(t, o.Logging.Enabled(tt.level), tt.reason)
			assert.False(t, o.Logging.Enabled(tt.level-1), tt.reason)
			var out bytes.Buffer
			o.Logging.Logger(&out).Error(assert.AnError, "failed")
			assert.Equal(t, tt.json, strings.HasPrefix(out.String(), "{"), tt.reason)
			want := off
			if tt.warning != "" {
				want = warned
			}
			requireWarning(t, flags.Warnings(in("tools")), want, tt.warning)
		})
	}
}

// Reloader takes the argument after a text for its value.
func TestTextOfReloaderAsASecondArgument(t *testing.T) {
	t.Parallel()
	o := complete(t, "--reload-on-create", "True", "--is-openshift", "auto", "--reload-on-delete", "", "--is-Argo-Rollouts", "--enable-ha", "true")
	assert.True(t, o.Selection.Stakater.ReloadOnCreate, "the argument that follows is True")
	assert.False(t, o.Selection.Stakater.ReloadOnDelete, "the argument that follows is empty")
	assert.True(t, handles("apps.openshift.io", "v1", "DeploymentConfig")(o), "--is-openshift has a value that is no false")
	assert.True(t, handles("argoproj.io", "v1alpha1", "Rollout")(o), "no value follows")
	assert.True(t, o.Election.Enabled, "the argument that follows is true")
	require.ErrorContains(t, options.NewFlags().Parse([]string{"--enable-ha", "maybe"}), `unexpected argument "maybe"`, "a boolean in Reloader")
}
