package edge_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
)

func TestWhyOfAllWorkloads(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"password": "1"})
	all := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	held := s.Deployment("held", fixture.Uses{Secrets: []string{"db"}, Replicas: 1, Labels: map[string]string{"tier": "back"}})
	s.Deployment("plain", fixture.Uses{})
	s.Deployment("misspelled", fixture.Uses{Annotations: map[string]string{"pod-reloader.cs.sap.com/configMaps": "app"}})
	s.CreatePromptly(s.Manifest("Deployment", "by-name", fixture.Uses{Annotations: map[string]string{fixture.ReloaderAuto: "true"}, ConfigMaps: []string{"app"}}))
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "the configuration was changed", all...)
	require.NoError(t, s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "db"}}))
	s.AwaitEvent(held, "ReloadHeld", "secret/db")

	text, err := shared.Why(t.Context(), "--all", "-n", s.Namespace)
	require.NoError(t, err)
	for _, line := range []string{
		`cronjob/web +no +\S+ ago +the pod template has the current configuration`,
		`daemonset/web +no +\S+ ago +the pods have the current configuration`,
		`deployment/by-name +no +\S+ ago +the pods have the current configuration`,
		`deployment/held +held +- +new pods could not start: secret/db deleted; .*`,
		`deployment/web +no +\S+ ago +the pods have the current configuration`,
		`statefulset/web +no +\S+ ago +the pods have the current configuration`,
		`deployment/misspelled +no +- +no annotation asks for reloads; .*`,
		`Problem of deployment/misspelled: .*configMaps.*`,
		`Problem of deployment/held: not found in this namespace: secret/db; .*`,
		`7 workloads: 1 held\. Without an annotation that asks for reloads: 1\.`,
	} {
		assert.Regexp(t, `(?m)^`+line+`$`, text)
	}
	assert.NotContains(t, text, "deployment/plain")
	assert.NotContains(t, text, "Warning", "the reason and the Problem say what the Events say")

	text, err = shared.Why(t.Context(), "--all", "--all-namespaces", "--namespaces", s.Namespace, "-l", "tier=back", "-o", "json")
	require.NoError(t, err)
	var overview explain.Overview
	require.NoError(t, json.Unmarshal([]byte(text), &overview))
	require.Len(t, overview.Workloads, 1, "the namespaces of the installation, and the labels: %s", text)
	one, err := shared.Why(t.Context(), "deployment/held", "-n", s.Namespace, "-o", "json")
	require.NoError(t, err)
	var report explain.Report
	require.NoError(t, json.Unmarshal([]byte(one), &report))
	assert.Equal(t, report.Reason, overview.Workloads[0].Reason)
	assert.Equal(t, report.Configuration, overview.Workloads[0].Configuration)
	assert.Equal(t, report.Verdict, overview.Workloads[0].Verdict)

	_, err = shared.Why(t.Context(), "--all", "-n", s.Namespace+"-misspelled")
	require.ErrorContains(t, err, "namespace "+s.Namespace+"-misspelled does not exist")
}

// What one kind, or one object, needs is a Problem: the rest is shown.
func TestWhyOfAllWorkloadsWithFewPermissions(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	s.Deployment("api", fixture.Uses{ConfigMaps: []string{"app"}})
	grant(s, "lister", `- {apiGroups: [apps], resources: [deployments], verbs: [list]}
- {apiGroups: [""], resources: [configmaps], verbs: [get]}`)
	var output string
	s.Await("the permissions", func() (err error) {
		output, err = s.Installation.WhyAs(t.Context(), controlplane.Identity{User: "lister"}, "--all", "-n", s.Namespace)
		if err == nil && !strings.Contains(output, "deployment/api") {
			err = errors.New(output)
		}
		return err
	})
	assert.Regexp(t, `(?m)^deployment/web +no +- +every tracked object has the recorded resourceVersion$`, output)
	assert.Regexp(t, `(?m)^Problem: the digest key cannot be read: `, output)
	assert.Regexp(t, `(?m)^Problem of 2 workloads: cannot show failed attempts, `, output)
	for _, kind := range []string{"StatefulSet", "DaemonSet", "CronJob", "Job"} {
		assert.Regexp(t, `(?m)^Problem: list \S+/`+kind+`: .* is forbidden`, output)
	}
	assert.Contains(t, output, "2 workloads: none is due.")
}
