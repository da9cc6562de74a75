package repository

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/cli"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// otherValues are those that notedValues cannot have beside its own.
const otherValues = `
namespaces: [shop, bar]
workloadKinds: []
reloader: {ignoreJobs: true, runCronJobs: true, reloadStrategy: env-vars}
leaderElection: {leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 2s}
webhook: {enabled: false}
metrics: {secure: true}
log: {format: text, level: debug}
`

// installed is an API server that has one object, and allows nothing else.
type installed struct {
	path   string
	object map[string]any
}

func (i installed) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := http.StatusForbidden, any(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"})
	if r.URL.Path == i.path {
		code, body = http.StatusOK, i.object
	}
	text, err := json.Marshal(body)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r,
	}, err
}

// Whatever the chart renders, the commands that take over the flags of the Deployment accept it, and read it as the manager does.
func TestCommandsAcceptTheArgumentsOfTheChart(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"noted": notedValues, "other": otherValues} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
		out, err := run(t.Context(), tool(t, "helm", "helm"), append(templateArgs(t, nil), "--values", file)...)
		require.NoError(t, err, name)
		deployment := parse(t, out)["Deployment pod-reloader/pod-reloader"]
		requireInherited(t, argumentsIn(t, deployment))
		for _, args := range [][]string{{"why", "deployment/cart"}, {"clean", "deployment/cart"}, {"graph", "--config=configmap:shop/absent"}} {
			var stderr bytes.Buffer
			code := cli.Run(t.Context(), cli.Process{
				Args: append(args, "--namespace=shop"), Stdout: io.Discard, Stderr: &stderr, Getenv: func(string) string { return "" },
				Cluster: &rest.Config{Host: "https://api", Transport: installed{"/apis/apps/v1/namespaces/pod-reloader/deployments/pod-reloader", deployment}},
			})
			assert.Equal(t, 1, code, "%s of the values %s: %s", args, name, stderr.String())
			assert.NotContains(t, stderr.String(), "warning", "%s of the values %s", args, name)
		}
	}
}

// argumentsIn returns the arguments of the container of a Deployment.
func argumentsIn(t *testing.T, deployment map[string]any) []string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Len(t, containers, 1)
	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	require.NoError(t, err)
	require.NotEmpty(t, args)
	return args
}

// requireInherited requires that a tool that has all flags reads arguments as a manager does.
func requireInherited(t *testing.T, args []string) {
	t.Helper()
	env := options.Environment{Getenv: func(string) string { return "" }}
	manager, shared, tool := options.NewFlags(), options.NewFlags(), pflag.NewFlagSet("tool", pflag.ContinueOnError)
	shared.All().VisitAll(func(flag *pflag.Flag) { shared.Share(tool, flag.Name) })
	require.NoError(t, manager.Parse(args))
	require.NoError(t, shared.Inherit(tool, args))
	selection, reload, err := manager.CompleteShared(env)
	require.NoError(t, err)
	inherited, inheritedReload, err := shared.CompleteShared(env)
	require.NoError(t, err)
	assert.Equal(t, selection, inherited)
	assert.Equal(t, reload, inheritedReload)
}
