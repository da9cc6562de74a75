package explain_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

func TestReportText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
		Time: now.Add(-90 * time.Second), Hash: f.hash, Cause: record.CauseConfigChange,
		Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}.String()
	f.raw["spec"].(map[string]any)["paused"] = true
	f.in.States[app] = f.state("2", "b")
	f.in.Paths = [][]string{{"secret/tls", "certificates.cert-manager.io/web"}}
	var out bytes.Buffer
	require.NoError(t, f.explain().Write(&out))
	for _, want := range []string{
		"Deployment shop/cart: a reload is due (configmap/app modified)",
		"A new template does not replace the running pods by itself: paused.",
		"secret/db (required)",
		"Last reload: 2026-01-02T03:02:35Z (1m30s ago), because configuration changed:\n  configmap/app modified\n",
		"Path: secret/tls → certificates.cert-manager.io/web → deployment/cart\n",
	} {
		assert.Contains(t, out.String(), want)
	}
}

func TestPartitionKeepsSomePods(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kind = "statefulset"
	f.raw["spec"].(map[string]any)["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{"partition": int64(1)}}
	var out bytes.Buffer
	require.NoError(t, f.explain().Write(&out))
	assert.Contains(t, out.String(), "A new template does not replace all running pods by itself: partition 1 keeps those of lower ordinals.")
}

func TestChangesThatTheRecordOnlyCountsAreSaid(t *testing.T) {
	t.Parallel()
	for want, changes := range map[string][]record.Change{
		"because configuration changed:\n  changes whose names do not fit into the annotations: 2\n": nil,
		"because configuration changed:\n  configmap/app modified\n  2 more\n":                       {{Ref: "configmap/app", Type: record.Modified}},
	} {
		f := newFixture(t)
		f.annotations()["pod-reloader.cs.sap.com/last-reload"] = record.LastReload{
			Time: now, Hash: f.hash, Cause: record.CauseConfigChange, Changes: changes, More: 2,
		}.String()
		var out bytes.Buffer
		require.NoError(t, f.explain().Write(&out))
		assert.Contains(t, out.String(), want)
	}
}
