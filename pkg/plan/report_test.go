package plan_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestReportIsGolden(t *testing.T) {
	t.Parallel()
	in := input(t,
		deployment(domain+`auto: "false", configmap.`+domain+`reload: "app,app-.*"`, reads),
		strings.Replace(deployment(auto+`, deployment.`+domain+`pause-period: soon`, reads+", imagePullSecrets: [{name: pull}]"), "name: cart\n", "name: basket\n", 1),
		strings.Replace(deployment(auto, reads), "name: cart\n", "name: same\n", 1),
	)
	report := plan.Compare(in)
	report.Settings = append(report.Settings, plan.Setting{Name: "--reload-strategy", Message: "another default"})
	var text bytes.Buffer
	require.NoError(t, report.Write(&text))
	want, err := os.ReadFile("testdata/report.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), text.String())
	encoded, err := json.MarshalIndent(report, "", "  ")
	require.NoError(t, err)
	want, err = os.ReadFile("testdata/report.json")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(encoded)+"\n", "programs read it: fields may come, none goes")
	nothing := plan.Compare(plan.Input{})
	assert.Empty(t, nothing.Settings)
	assert.Empty(t, nothing.Groups)
}

func TestObjectsThatNoWorkloadNamesAreListedWithWebhookURL(t *testing.T) {
	t.Parallel()
	in := input(t, deployment(auto, reads))
	in.Objects["dev"] = map[reference.Ref]annotation.Traits{cm("x"): {}}
	in.Reloader.NotifyOnly, in.Here.NotifyOnly, in.Reloader.IgnoredNamespaces = true, true, []string{"dev"}
	in.Objects["bank"] = in.Objects["dev"]
	in.NamespaceLabels = map[string]map[string]string{"shop": {"env": "test"}, "bank": {"env": "live"}}
	in.Reloader.NamespaceSelector = labels.SelectorFromSet(labels.Set{"env": "test"})
	in.Objects["shop"][cm("other")] = annotation.Traits{Ignored: true, Unselected: true}
	in.Objects["shop"][cm("ignored")] = annotation.Traits{Ignored: true}
	groups := plan.Compare(in).Groups
	require.Len(t, groups, 1)
	assert.Equal(t, []plan.Object{
		{Kind: "configmap", Namespace: "shop", Name: "app-eu"},
		{Kind: "configmap", Namespace: "shop", Name: "ignored"},
		{Kind: "configmap", Namespace: "shop", Name: "marked"},
		{Kind: "secret", Namespace: "shop", Name: "pull"},
	}, groups[0].Objects)
}
