package cli

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// installed is an API server that has one Deployment with some arguments and variables, or answers with a code. The container has the name
// pod-reloader unless another one is set.
type installed struct {
	code      int
	container string
	arguments []any
	variables []any
}

func (i installed) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.code != http.StatusOK || r.URL.Path != "/apis/apps/v1/namespaces/tools/deployments/pod-reloader" {
		code := i.code
		if code == http.StatusOK {
			code = http.StatusNotFound
		}
		reason := map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden"}[code]
		return half{}.answer(r, code, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "refused",
		})
	}
	return half{}.answer(r, http.StatusOK, map[string]any{
		"kind": "Deployment", "apiVersion": "apps/v1", "metadata": map[string]any{"namespace": "tools", "name": "pod-reloader"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "config-reloader", "args": []any{"--object-selector=of=proxy"}},
			map[string]any{"name": cmp.Or(i.container, "pod-reloader"), "command": []any{"/pod-reloader"}, "args": i.arguments, "env": i.variables},
		}}}},
	})
}

const unknownFlags = "the flags of the installation are not known: name its Deployment with --installation-namespace and --installation-name, or repeat them: "

// whyOf reads a command line of why as that of a user of an installation in the namespace tools.
func whyOf(t *testing.T, api installed, args ...string) (f *whyFlags, asked question, stderr string, err error) {
	t.Helper()
	return whyIn(t, unset, api, args...)
}

// whyIn is whyOf in an environment.
func whyIn(t *testing.T, getenv func(string) string, api installed, args ...string) (f *whyFlags, asked question, stderr string, err error) {
	t.Helper()
	var warnings bytes.Buffer
	p := Process{Getenv: getenv, Stderr: &warnings, Cluster: &rest.Config{Host: "http://api", Transport: api}}
	f = &whyFlags{shared: newShared(p)}
	cmd := f.command(p)
	require.NoError(t, cmd.Flags().Parse(append([]string{"--installation-namespace=tools"}, args...)))
	asked, _, err = f.completed(t.Context(), p, cmd.Flags().Args())
	return f, asked, warnings.String(), err
}

func TestCommandsTakeOverTheFlagsOfTheInstallation(t *testing.T) {
	t.Parallel()
	api := installed{
		code: http.StatusOK,
		arguments: []any{
			"--is-Argo-Rollouts=true", "--object-selector", "tier=web", "--namespaces=shop,bar", "--digest-key-secret=keys", "--leader-election-id=lease",
			"--settle=3s", "--refractory=7s",
		},
	}
	f, asked, stderr, err := whyOf(t, api, "rollout/cart", "--namespaces=shop", "--refractory=9s")
	require.NoError(t, err)
	assert.Empty(t, stderr)
	assert.Empty(t, f.unknown)
	_, outside, err := asked.find(asked.selection.Kinds)
	require.NoError(t, err, "the installation handles Rollouts")
	assert.Empty(t, outside)
	assert.Equal(t, "tier=web", asked.selection.Scope.ObjectSelector.String(), "the flag of the container of pod-reloader")
	assert.Equal(t, []string{"shop"}, asked.selection.Scope.Namespaces, "the command line has its own")
	assert.Equal(t, "9s", asked.reload.Refractory.String(), "the command line has its own")
	assert.Equal(t, "keys", f.key)
	assert.Equal(t, "tools/lease", asked.lease.String())
}

func TestCommandsTakeOverTheVariablesOfTheInstallation(t *testing.T) {
	t.Parallel()
	api := installed{code: http.StatusOK, variables: []any{map[string]any{
		"name": "KUBERNETES_NAMESPACE", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.namespace"}},
	}}}
	_, asked, _, err := whyOf(t, api, "deployment/cart")
	require.NoError(t, err)
	assert.Equal(t, []string{"tools"}, asked.selection.Scope.Namespaces, "it handles its own namespace only")
	assert.Equal(t, "tools/pod-reloader", asked.lease.String())
}

func TestCommandsWithoutTheFlagsOfTheInstallation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		api  installed
		want string
		args []string
	}{
		"no Deployment":            {installed{code: http.StatusNotFound}, unknownFlags, nil},
		"another name":             {installed{code: http.StatusOK}, unknownFlags, []string{"--installation-name=other"}},
		"no permission":            {installed{code: http.StatusForbidden}, unknownFlags, nil},
		"a failing API server":     {installed{code: http.StatusInternalServerError}, unknownFlags, nil},
		"flags of another version": {installed{code: http.StatusOK, arguments: []any{"--new", "--refractory=7s"}}, "flags of the installation are left out: --new: unknown flag", nil},
		"a file in the pods": {
			installed{code: http.StatusOK, arguments: []any{"--config=/etc/none/config.yaml"}},
			"the configuration of the installation is the file /etc/none/config.yaml in its pods: run the command there",
			nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, asked, stderr, err := whyOf(t, tt.api, append([]string{"deployment/cart"}, tt.args...)...)
			require.NoError(t, err, "the command goes on")
			assert.Empty(t, stderr, "the report has it")
			require.Len(t, f.unknown, 1)
			assert.True(t, strings.HasPrefix(f.unknown[0].Error(), tt.want), "it says %q", f.unknown[0])
			assert.True(t, asked.selection.Configuration.IsZero(), "there is no configuration to read")
			assert.Equal(t, "tools", f.own)
		})
	}
}

// With the flags of the installation, the command line may be in order.
func TestWrongUsageWithoutTheFlagsOfTheInstallation(t *testing.T) {
	t.Parallel()
	_, _, stderr, err := whyOf(t, installed{code: http.StatusForbidden}, "rollout/cart")
	require.ErrorAs(t, err, &usageError{})
	assert.True(t, strings.HasPrefix(stderr, "pod-reloader: warning: "+unknownFlags), "it prints %q", stderr)
}

// A command that has no report prints what is not known.
func TestCommandsWarnThatTheInstallationIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"clean", "deployment/cart"}, {"graph", "--config=configmap:tools/absent"}} {
		var stderr bytes.Buffer
		code := Run(t.Context(), Process{
			Args: append(args, "--installation-namespace=tools", "-n", "shop"), Getenv: unset, Stdout: io.Discard, Stderr: &stderr,
			Cluster: &rest.Config{Host: "http://api", Transport: installed{code: http.StatusForbidden}},
		})
		assert.Equal(t, exitFailed, code, args)
		assert.Contains(t, stderr.String(), "pod-reloader: warning: "+unknownFlags, args)
	}
}

// The flags of another program say nothing of the installation.
func TestDeploymentWithoutAContainerOfTheProgram(t *testing.T) {
	t.Parallel()
	f, _, _, err := whyOf(t, installed{code: http.StatusOK, container: "web"}, "deployment/cart")
	require.NoError(t, err)
	require.Len(t, f.unknown, 1)
	assert.ErrorContains(t, f.unknown[0], "no container of the Deployment tools/pod-reloader has the name or the image of pod-reloader: check --installation-name")
}

// A value of the installation that has another effect than it seems to is as bad as one of the command line.
func TestCommandsWarnOfValuesOfTheInstallation(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--is-openshift=maybe"}} {
		_, _, stderr, err := whyOf(t, installed{code: http.StatusOK, arguments: []any{"--is-openshift=maybe"}}, append(args, "deployment/cart")...)
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(stderr, `--is-openshift: "maybe" is neither true nor false`), stderr)
	}
}

// The command has not the flag, or the value is one of a later version.
func TestValuesOfTheInstallationThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	_, asked, stderr, err := whyOf(t, installed{code: http.StatusOK, arguments: []any{"--hash=later", "--settle=soon", "--refractory=7s"}}, "deployment/cart")
	require.NoError(t, err, "why has neither")
	assert.Empty(t, stderr)
	assert.Equal(t, "7s", asked.reload.Refractory.String())

	_, _, _, err = whyOf(t, installed{code: http.StatusOK, arguments: []any{"--reload-strategy=later"}}, "deployment/cart")
	require.ErrorAs(t, err, &usageError{}, "the command line can correct it")
	require.ErrorContains(t, err, "with the flags of the Deployment tools/pod-reloader, those of the command line take precedence: --reload-strategy")
	_, _, _, err = whyOf(t, installed{code: http.StatusOK, arguments: []any{"--reload-strategy=later"}}, "deployment/cart", "--reload-strategy=annotations")
	assert.NoError(t, err, "it does")
}

func TestArgumentsOfTheInstallationHaveTheValuesOfItsVariables(t *testing.T) {
	t.Parallel()
	_, asked, _, err := whyOf(t, installed{
		code: http.StatusOK, arguments: []any{"--object-selector=tier=$(TIER)", "--leader-election-id=$(LEASE)", "--namespaces=$$(TIER)"},
		variables: []any{map[string]any{"name": "TIER", "value": "web"}, map[string]any{"name": "LEASE", "value": "mine"}},
	}, "deployment/cart")
	require.ErrorContains(t, err, "$(TIER)", "it is not meant as a reference")
	assert.Equal(t, "tier=web", asked.selection.Scope.ObjectSelector.String())
	assert.Equal(t, "mine", asked.lease.Name)
}

// It removes annotations of the prefix and from the kinds that the installation handles.
func TestCleanTakesOverThePrefixAndTheKinds(t *testing.T) {
	t.Parallel()
	p := Process{Getenv: unset, Stderr: io.Discard, Cluster: &rest.Config{Host: "http://api", Transport: installed{code: http.StatusOK, arguments: []any{
		"--annotation-prefix=example.com/", "--workload-kinds=a.io/v1/Fleet=spec.template", "--is-Argo-Rollouts",
	}}}}
	f := &cleanFlags{shared: newShared(p)}
	require.NoError(t, f.command(p).Flags().Parse([]string{"--installation-namespace=tools"}))
	asked, _, err := f.completed(t.Context(), p, []string{"fleet/cart", "rollout/cart"})
	require.NoError(t, err)
	assert.Empty(t, f.unknown)
	assert.Equal(t, "example.com/config-hash", asked.selection.Keys.ConfigHash)
	for _, kind := range []string{"fleet", "rollout", "deployment"} {
		assert.Len(t, asked.selection.Kinds.Find(kind), 1, kind)
	}
}

// podOf are the variables of a pod in the manifests.
func podOf(others ...any) []any {
	from := func(name, field string) any {
		return map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": field}}}
	}
	return append(others, from("POD_NAMESPACE", "metadata.namespace"), from("POD_NAME", "metadata.name"))
}

// A manager has its digest key and its lease where its own flags and variables say, whatever leads to its Deployment.
func TestDigestKeyAndLeaseAreWhereTheManagerHasThem(t *testing.T) {
	t.Parallel()
	named := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	for name, c := range map[string]struct {
		api        installed
		own, lease string
	}{
		"the manifests":           {installed{variables: podOf()}, "tools", "tools/pod-reloader"},
		"no variables":            {installed{}, "tools", "tools/pod-reloader"},
		"a name by a flag":        {installed{arguments: []any{"--installation-name=mine"}, variables: podOf()}, "tools", "tools/mine"},
		"a name by a variable":    {installed{variables: podOf(named("RELOADER_DEPLOYMENT_NAME", "mine"))}, "tools", "tools/mine"},
		"a namespace by a flag":   {installed{arguments: []any{"--namespace=keys"}, variables: podOf()}, "keys", "keys/pod-reloader"},
		"by a variable":           {installed{variables: []any{named("POD_NAMESPACE", "keys")}}, "keys", "keys/pod-reloader"},
		"by Reloader's":           {installed{variables: []any{named("RELOADER_NAMESPACE", "keys")}}, "keys", "keys/pod-reloader"},
		"another one for a lease": {installed{arguments: []any{"--namespace=keys", "--leader-election-namespace=leases"}}, "keys", "leases/pod-reloader"},
	} {
		c.api.code = http.StatusOK
		for _, args := range [][]string{nil, {"--installation-name=pod-reloader"}} {
			f, asked, _, err := whyOf(t, c.api, append(args, "deployment/cart")...)
			require.NoError(t, err, name)
			assert.Equal(t, c.own, f.own, name)
			assert.Equal(t, c.lease, asked.lease.String(), "%s %s", name, args)
		}
	}
}

// A job of a CI system runs in a pod, too.
func TestVariablesOfAnotherPodSayNothingOfTheInstallation(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string {
		return map[string]string{"POD_NAMESPACE": "ci", "POD_NAME": "job-a-bcdef", "KUBERNETES_NAMESPACE": "ci"}[name]
	}
	f, asked, _, err := whyIn(t, getenv, installed{code: http.StatusOK}, "--installation-name=pod-reloader", "deployment/cart")
	require.NoError(t, err)
	assert.Empty(t, asked.selection.Scope.Namespaces)
	assert.Equal(t, "tools", f.own)
	assert.Equal(t, "tools/pod-reloader", asked.lease.String())
}

// In a pod of the installation, they have values that the manifest refers to.
func TestVariablesOfTheInstallationThatAreElsewhere(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string {
		return map[string]string{"POD_NAMESPACE": "tools", "KUBERNETES_NAMESPACE": "shop"}[name]
	}
	_, asked, _, err := whyIn(t, getenv, installed{code: http.StatusOK, variables: []any{map[string]any{
		"name": "KUBERNETES_NAMESPACE", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "settings", "key": "only"}},
	}}}, "deployment/cart")
	require.NoError(t, err)
	assert.Equal(t, []string{"shop"}, asked.selection.Scope.Namespaces)
}

func TestNameOfTheInstallationIsChecked(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"why", "clean", "graph"} {
		var stderr bytes.Buffer
		code := Run(t.Context(), Process{
			Args: []string{command, "deployment/cart", "-n", "shop", "--installation-name=a/b"}, Getenv: unset, Stdout: io.Discard, Stderr: &stderr,
			Cluster: &rest.Config{Host: "http://api", Transport: installed{code: http.StatusOK}},
		})
		assert.Equal(t, exitUsage, code, command)
		assert.Equal(t, 1, strings.Count(stderr.String(), `--installation-name: the name "a/b"`), stderr.String())
	}
}

func TestUnknownKindIsAUsageErrorAlsoWithTheFlagsOfTheInstallation(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusOK, http.StatusNotFound} {
		_, _, _, err := whyOf(t, installed{code: code}, "rollout/cart")
		require.ErrorAs(t, err, &usageError{}, "code %d", code)
		assert.ErrorContains(t, err, `unknown kind "rollout"`)
	}
}

// Elsewhere, a file of the same name is another one.
func TestConfigurationOfTheInstallationThatIsAFileInItsPods(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	api := installed{code: http.StatusOK, arguments: []any{"--config=" + path}}
	f, asked, _, err := whyIn(t, func(name string) string { return map[string]string{"POD_NAMESPACE": "tools"}[name] }, api, "deployment/cart")
	require.NoError(t, err)
	assert.Empty(t, f.unknown)
	assert.Equal(t, path, asked.selection.Configuration.Path, "it runs in such a pod")

	f, asked, _, err = whyOf(t, api, "deployment/cart")
	require.NoError(t, err)
	assert.Len(t, f.unknown, 1)
	assert.True(t, asked.selection.Configuration.IsZero())
}

// away is an API server that does not answer.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// What is missing on the command line may be in the Deployment, which cannot be read.
func TestMissingFlagIsNamedWithTheAPIServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	p := Process{Args: []string{"graph"}, Getenv: unset, Stdout: io.Discard, Stderr: &stderr, Cluster: &rest.Config{Host: "http://api", Transport: away{}}}
	assert.Equal(t, exitUsage, Run(t.Context(), p))
	assert.Contains(t, stderr.String(), "read the Deployment of the installation")
	assert.Contains(t, stderr.String(), "connection refused")
	assert.Contains(t, stderr.String(), "name the configuration of the installation with --config")
}
