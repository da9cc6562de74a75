package repository

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/cli"
)

// notedValues are values on which the answer of the command check in the notes depends, among others. The notes themselves cannot be rendered without a
// cluster: an object of the release has their flags.
const notedValues = `
annotationPrefix: example.com
namespacesToIgnore: [dev]
namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [a, b]}]}
objectSelector: {matchLabels: {tier: web}}
workloadKinds: [{apiVersion: a.io/v1, kind: A, template: spec.template, resource: as}]
referents: [{id: b, gvr: {group: b.io, version: v1, resource: bs}}]
reloader:
  autoReloadAll: true
  isArgoRollouts: true
  isOpenshift: true
  ignoreJobs: true
  enableCSIIntegration: true
  reloadStrategy: annotations
  annotations:
    auto-annotation: example.org/1
    auto-search-annotation: example.org/2
    configmap-annotation: example.org/3
    configmap-auto-annotation: example.org/4
    configmap-exclude-annotation: example.org/5
    ignore-annotation: example.org/6
    pause-deployment-annotation: example.org/7
    pause-deployment-time-annotation: example.org/8
    search-match-annotation: example.org/9
    secret-annotation: example.org/10
    secret-auto-annotation: example.org/11
    secret-exclude-annotation: example.org/12
    secretproviderclass-annotation: example.org/13
    secretproviderclass-auto-annotation: example.org/14
    secretproviderclass-exclude-annotation: example.org/15
digestKey: {existingSecret: mine}
secrets: {enabled: false}
args: [--settle=2s, --reload-on-create, "true", --missing-required, reload, --refractory=10m, --reload-on-delete, "--resource-label-selector=a in (b)", --rerun-finished-jobs, "--webhook-url=https://example.com/a?b=c"]
extraObjects:
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: notes}
    data:
      why: {{ include "pod-reloader.shellFlags" (include "pod-reloader.whyFlags" . | fromJsonArray) | quote }}
      check: {{ include "pod-reloader.shellFlags" (include "pod-reloader.checkFlags" . | fromJsonArray) | quote }}
`

// The command check in the notes has the flags of the installation on which its answer depends. The command why reads them itself.
func TestNotesPassTheFlagsOfTheInstallation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(notedValues), 0o600))
	out, err := run(t.Context(), tool(t, "helm", "helm"), append(templateArgs(t, nil), "--values", file)...)
	require.NoError(t, err)
	rendered := parse(t, out)

	check := noted(t, rendered, "check")
	assert.Equal(t, []string{
		"--annotation-prefix=example.com/", "--labels=tier=web", "--config=configmap:pod-reloader/pod-reloader", "--service-account=pod-reloader/pod-reloader",
	}, check)
	requireFlags(t, append([]string{"check", "--namespace", "shop", "--timeout", "1ms"}, check...))
}

// A pod has a part of a long name of its Deployment only, so that the command cannot find the name of the installation.
func TestNotesPassALongNameOfTheInstallation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(notedValues), 0o600))
	helm := tool(t, "helm", "helm")
	for length, passed := range map[int]bool{12: false, 46: false, 47: true, 50: true} {
		name := strings.Repeat("a", length)
		out, err := run(t.Context(), helm, append(templateArgs(t, []string{"fullnameOverride=" + name}), "--values", file)...)
		require.NoError(t, err)
		want := []string{}
		if passed {
			want = []string{"--installation-name=" + name}
		}
		why := noted(t, parse(t, out), "why")
		assert.Equal(t, want, why, "%d characters", length)
		requireFlags(t, append([]string{"why", "deployment/cart", "--namespace", "shop"}, why...))
	}
}

// noted returns the flags of a command as a shell reads them.
func noted(t *testing.T, rendered objects, command string) []string {
	t.Helper()
	text, _ := field(t, rendered["ConfigMap /notes"], "data", command).(string)
	out, err := run(t.Context(), "bash", "-c", `printf '%s\n'`+text)
	require.NoError(t, err)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// requireFlags runs a command, which finds no cluster. It must not end before, with the exit code of a wrong usage.
func requireFlags(t *testing.T, args []string) {
	t.Helper()
	var problems bytes.Buffer
	code := cli.Run(t.Context(), cli.Process{
		Args: args, Stdout: &problems, Stderr: &problems, Getenv: func(string) string { return "" }, Cluster: &rest.Config{Host: "https://127.0.0.1:1"},
	})
	require.Equal(t, 1, code, problems.String())
	assert.Contains(t, problems.String(), "connection refused")
}
