package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unset is an environment without variables.
func unset(string) string { return "" }

func TestRun(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args           []string
		code           int
		stdout, stderr []string
		why            string
	}{
		"help":                            {[]string{"--help"}, 0, []string{"Usage:", "--settle", "version", "why", "Workloads:"}, nil, "a newcomer asks for it first"},
		"help, one dash":                  {[]string{"-help"}, 0, []string{"Usage:"}, nil, "as Go's own flags take it"},
		"help as a command":               {[]string{"help"}, 0, []string{"Usage:", "--settle"}, nil, "as cobra has it"},
		"help as a command, on a command": {[]string{"help", "why"}, 0, []string{"why [KIND/NAME]"}, nil, "as cobra has it"},
		"help of why": {
			[]string{"why", "--help"},
			0,
			[]string{"SecretProviderClassPodStatuses with --enable-csi-integration", "--refractory duration"},
			nil, "permissions and flags",
		},
		"help as a command, on no command": {[]string{"help", "verify"}, 2, nil, []string{`pod-reloader: "verify" is no command`}, "there is no such help"},
		"help on a command":                {[]string{"version", "--help"}, 0, []string{"--output"}, nil, "as cobra has it"},
		"version":                          {[]string{"version"}, 0, []string{"pod-reloader "}, nil, "bug reports name it"},
		"wrong output":                     {[]string{"version", "-o", "xml"}, 2, nil, []string{`pod-reloader: --output: "xml": want text or json`}, "a usage error"},
		"wrong flag":                       {[]string{"version", "--bogus"}, 2, nil, []string{"pod-reloader: unknown flag: --bogus"}, "a usage error"},
		"argument":                         {[]string{"version", "now"}, 2, nil, []string{`pod-reloader: unexpected argument "now"`}, "a usage error"},
		"why with all wrong": {
			[]string{"why", "deployment", "-o", "xml", "--annotation-prefix", "A/B", "--config", "configmap:x"},
			2, nil,
			[]string{"pod-reloader: --output", "pod-reloader: --annotation-prefix", "pod-reloader: --config", "KIND/NAME"},
			"all that is wrong is named at once",
		},
		"why of an unknown kind": {
			[]string{"why", "service/x"}, 2, nil, []string{`unknown kind "service"`, "deployment", "--workload-kinds", "--config"}, "it says which there are",
		},
		"why of a pod": {
			[]string{"why", "po/x"},
			2, nil,
			[]string{`pod-reloader: "po/x": name the workload that owns it, e.g. deployment/cart` + "\n"},
			"no flag makes it one",
		},
		"clean of a ReplicaSet": {
			[]string{"clean", "ReplicaSet.apps/x"}, 2, nil, []string{`"ReplicaSet.apps/x": name the workload that owns it`}, "no flag makes it one",
		},
		"why of an ignored kind": {
			[]string{"why", "job/x", "--ignored-workload-types=jobs", "--kubeconfig=testdata/none"},
			1, nil,
			[]string{"find the API server"},
			"the answer is that it is not handled",
		},
		"why of a kind whose namesake is ignored": {
			[]string{
				"why", "job/x", "--ignored-workload-types=jobs", "--workload-kinds=batch.volcano.sh/v1alpha1/Job=spec.template",
				"--kubeconfig=testdata/none",
			},
			1, nil,
			[]string{"find the API server"},
			"the ignored one is not asked about",
		},
		"clean of nothing":         {[]string{"clean"}, 2, nil, []string{"pod-reloader: name workloads as KIND/NAME, or use --all"}, "not everything"},
		"clean of all, and of one": {[]string{"clean", "--all", "deployment/x"}, 2, nil, []string{"pod-reloader: name workloads as KIND/NAME, or use --all"}, "which?"},
		"clean of a selector":      {[]string{"clean", "deployment/x", "-l", "a=b"}, 2, nil, []string{"--selector need --all"}, "a name is enough"},
		"clean with all wrong":     {[]string{"clean", "service/x", "-l", "a b"}, 2, nil, []string{`unknown kind "service"`, "--selector"}, "all that is wrong is named at once"},
		"plan from nothing":        {[]string{"plan"}, 2, nil, []string{"pod-reloader: name what is compared: --from-reloader"}, "there may be others"},
		"plan with a value": {
			[]string{"plan", "--from-reloader", "--reload-on-create", "true", "--", "--reload-on-delete", "true"},
			2, nil,
			[]string{`pod-reloader: unexpected argument "true": write --flag=value, or all arguments of Reloader after --`},
			"the value would be taken for an argument of Reloader",
		},
		"plan without annotations": {
			[]string{"plan", "--from-reloader", "--stakater-annotations=false"},
			2, nil,
			[]string{"pod-reloader: --stakater-annotations=false leaves nothing to compare: remove it"},
			"every workload would differ, for no reason of a rule",
		},
		"plan with all wrong": {
			[]string{"plan", "-o", "xml", "--reloader", "a/b/c", "--namespace-selector", "a b"},
			2, nil,
			[]string{"pod-reloader: --output", `--reloader: "a/b/c": want NAMESPACE/NAME`, "pod-reloader: --namespace-selector", "--from-reloader"},
			"all that is wrong is named at once",
		},
		"why of nothing":         {[]string{"why"}, 2, nil, []string{"pod-reloader: name workloads as KIND/NAME, or use --all\n"}, "a usage error"},
		"why of all, and of one": {[]string{"why", "--all", "deployment/x"}, 2, nil, []string{"pod-reloader: name workloads as KIND/NAME, or use --all\n"}, "which?"},
		"why of two":             {[]string{"why", "deployment/x", "deployment/y"}, 2, nil, []string{"pod-reloader: name one workload as KIND/NAME"}, "one is explained at a time"},
		"why of all by labels": {
			[]string{"why", "--all", "-l", "a b", "--kubeconfig=testdata/none"}, 2, nil, []string{`pod-reloader: --selector: "a b" is not a label selector` + "\n"}, "a usage error",
		},
		"no command":           {[]string{"start", "now"}, 2, nil, []string{`pod-reloader: "start" is no command; --help lists them` + "\n"}, "a usage error"},
		"nearly a command":     {[]string{"wy", "deployment/cart"}, 2, nil, []string{`pod-reloader: "wy" is no command; did you mean why?` + "\n"}, "a slip"},
		"help on no command":   {[]string{"verify", "--help"}, 2, nil, []string{`pod-reloader: "verify" is no command`}, "the help of another command would mislead"},
		"version as a flag":    {[]string{"--version"}, 0, []string{"pod-reloader "}, nil, "as most programs take it"},
		"flag of a command":    {[]string{"-n", "shop"}, 2, nil, []string{"pod-reloader: -n: unknown flag"}, "as it was written"},
		"roles of an argument": {[]string{"roles", "now"}, 2, nil, []string{`pod-reloader: unexpected argument "now"`}, "a usage error"},
		"roles without a name": {
			[]string{"roles", "--config=testdata/none", "--name="}, 2, nil, []string{`pod-reloader: --name: "" is no name of a ClusterRole` + "\n"}, "kubectl would refuse it",
		},
		"roles with a path as a name": {
			[]string{"roles", "--name=a/b"},
			2, nil,
			[]string{`pod-reloader: --name: "a/b" is no name of a ClusterRole` + "\n", "--config"},
			"all that is wrong is named at once",
		},
		"check with all wrong": {
			[]string{"check", "--timeout=-1s", "--service-account=a", "--annotation-prefix=A/B"},
			2, nil,
			[]string{"pod-reloader: --timeout: -1s: must not be negative\n", "pod-reloader: --service-account", "pod-reloader: --annotation-prefix"},
			"all that is wrong is named at once",
		},
		"why without the names of the key": {
			[]string{"why", "deployment/x", "--digest-key-secret=", "--installation-namespace="},
			2, nil,
			[]string{"pod-reloader: --digest-key-secret: the name is empty\n", `pod-reloader: --installation-namespace: "" is not a valid namespace name`},
			"no Secret can have it",
		},
		"why of a path":      {[]string{"why", "deployment/x/y"}, 2, nil, []string{`"deployment/x/y": name the workload as KIND/NAME`}, "no workload can have the name"},
		"roles of nothing":   {[]string{"roles"}, 2, nil, []string{"pod-reloader: name the configuration of the installation with --config"}, "a usage error"},
		"flags of a command": {[]string{"why", "--bogus"}, 2, nil, []string{"unknown flag: --bogus; pod-reloader why --help lists the flags"}, "the next step"},
		"help of check":      {[]string{"check", "--help"}, 0, []string{"--labels KEY=VALUE", "--kubeconfig path", "-n, --namespace namespace"}, nil, "names of values"},
		"help of plan":       {[]string{"plan", "--help"}, 0, []string{"--kubeconfig path", "-n, --namespace namespace"}, nil, "names of values"},
		"no kubeconfig":      {[]string{"why", "deployment/x", "--kubeconfig=testdata/none"}, 1, nil, []string{"find the API server: stat testdata/none: no such file or directory; name a kubeconfig with --kubeconfig or the variable KUBECONFIG"}, "a namespace would not help"},
		"all at once": {
			[]string{"--bogus", "--settle=soon", "--hash", "md5"},
			2, nil,
			[]string{"pod-reloader: --bogus", "pod-reloader: --settle", "pod-reloader: --hash"},
			"one run reports every problem",
		},
		"text of Reloader in a tool": {
			[]string{"why", "deployment/x", "--kubeconfig=testdata/none", "--is-openshift=4.18"},
			1, nil,
			[]string{`pod-reloader: warning: --is-openshift: "4.18" is neither true nor false`},
			"the answer is for false",
		},
		"text of Reloader in clean": {
			[]string{"clean", "deployment/x", "--kubeconfig=testdata/none", "--is-Argo-Rollouts=yes"},
			1, nil,
			[]string{`pod-reloader: warning: --is-Argo-Rollouts: "yes" is neither true nor false`},
			"Rollouts are not cleaned",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			p := Process{Args: tt.args, Stdout: &stdout, Stderr: &stderr, Getenv: unset}
			assert.Equal(t, tt.code, Run(t.Context(), p), tt.why)
			for _, want := range tt.stdout {
				assert.Contains(t, stdout.String(), want)
			}
			for _, want := range tt.stderr {
				assert.Contains(t, stderr.String(), want)
			}
			if tt.stderr == nil {
				assert.Empty(t, stderr.String())
			} else {
				assert.Empty(t, stdout.String(), "scripts read it")
			}
		})
	}
}

// The manager sets the loggers of the process, which the commands of other tests use: it runs beside none of them.
//
//nolint:paralleltest // it sets the loggers of the process
func TestRunOfTheManager(t *testing.T) {
	tests := map[string]struct {
		args, stderr []string
		why          string
	}{
		"no API server": {
			[]string{"--namespace=tools", "--kubeconfig=testdata/none"},
			[]string{"pod-reloader: find the API server", "--kubeconfig"},
			"not the command line's fault",
		},
		"text of Reloader": {
			[]string{"--namespace=tools", "--kubeconfig=testdata/none", "--reload-on-create=maybe"},
			[]string{`"level":"error"`, `"error":"--reload-on-create: \"maybe\" is neither true nor false, and has the effect of false: write true or false"`},
			"Reloader starts with it",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, 1, Run(t.Context(), Process{Args: tt.args, Stdout: &stdout, Stderr: &stderr, Getenv: unset}), tt.why)
			for _, want := range tt.stderr {
				assert.Contains(t, stderr.String(), want)
			}
			assert.Empty(t, stdout.String(), "scripts read it")
		})
	}
}

func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	p := Process{Args: []string{"version", "-o", "json"}, Stdout: &stdout, Stderr: &stderr, Getenv: unset}
	require.Zero(t, Run(t.Context(), p))
	var info buildInfo
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &info))
	assert.NotEmpty(t, info.Version)
	assert.Regexp(t, `^go\d`, info.GoVersion)
}
