package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// installed is an API server that has one Deployment with some arguments and variables, or answers with a code.
type installed struct {
	code      int
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
			map[string]any{"name": "proxy", "args": []any{"--object-selector=of=proxy"}},
			map[string]any{"name": "pod-reloader", "command": []any{"/pod-reloader"}, "args": i.arguments, "env": i.variables},
		}}}},
	})
}

const unknownFlags = "the flags of the installation are not known: name its Deployment with --installation-namespace and --installation-name, or repeat them: "

// whyOf reads a command line of why as that of a user of an installation in the namespace tools.
func whyOf(t *testing.T, api installed, args ...string) (f *whyFlags, asked question, stderr string, err error) {
	t.Helper()
	var warnings bytes.Buffer
	p := Process{Getenv: unset, Stderr: &warnings, Cluster: &rest.Config{Host: "http://api", Transport: api}}
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
			_, asked, stderr, err := whyOf(t, tt.api, append([]string{"deployment/cart"}, tt.args...)...)
			require.NoError(t, err, "the command goes on")
			assert.True(t, strings.HasPrefix(stderr, "pod-reloader: warning: "+tt.want), "it prints %q", stderr)
			assert.True(t, asked.selection.Configuration.IsZero(), "there is no configuration to read")
		})
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
		code: http.StatusOK, arguments: []any{"--object-selector=tier=$(TIER)", "--leader-election-id=$(LEASE)", "--installation-name=$$(TIER)"},
		variables: []any{map[string]any{"name": "TIER", "value": "web"}, map[string]any{"name": "LEASE", "value": "mine"}},
	}, "deployment/cart")
	require.ErrorContains(t, err, "$(TIER)", "it is not meant as a reference")
	assert.Equal(t, "tier=web", asked.selection.Scope.ObjectSelector.String())
	assert.Equal(t, "mine", asked.lease.Name)
}

// The name of the Deployment is that of the installation only where nothing else says so.
func TestNameOfTheInstallationIsThatOfItsManager(t *testing.T) {
	t.Parallel()
	for name, api := range map[string]installed{
		"of a flag":     {code: http.StatusOK, arguments: []any{"--installation-name=mine"}},
		"of a variable": {code: http.StatusOK, variables: []any{map[string]any{"name": "RELOADER_DEPLOYMENT_NAME", "value": "mine"}}},
	} {
		_, asked, _, err := whyOf(t, api, "deployment/cart")
		require.NoError(t, err, name)
		assert.Equal(t, "mine", asked.lease.Name, name)
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

// In a pod of the installation, the file is there.
func TestConfigurationOfTheInstallationThatIsAFileHere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, asked, stderr, err := whyOf(t, installed{code: http.StatusOK, arguments: []any{"--config=" + path}}, "deployment/cart")
	require.NoError(t, err)
	assert.Empty(t, stderr)
	assert.Equal(t, path, asked.selection.Configuration.Path)
}
