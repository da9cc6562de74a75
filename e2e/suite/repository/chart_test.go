package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
)

func TestChartRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	tests := map[string]struct {
		reason string
		values []string
		want   string
	}{
		"NamespacesAndSelector": {
			reason: "one would silently win",
			values: []string{"namespaces={a}", "namespaceSelector.matchLabels.a=b"},
			want:   "cannot be combined",
		},
		"FailurePolicy": {
			reason: "the API server would say so late and in other words",
			values: []string{"webhook.failurePolicy=ignore"},
			want:   `webhook.failurePolicy is "ignore"; use Ignore or Fail`,
		},
		"KindWithoutResource": {
			reason: "rights and rules need the plural, which nobody can guess",
			values: []string{"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t"},
			want:   "workloadKinds[0].resource is missing",
		},
		"NamespacesAndIgnored": {
			reason: "one of them is redundant",
			values: []string{"namespaces={a}", "namespacesToIgnore={b}"},
			want:   "take the ignored ones out of namespaces",
		},
		"AutoReloadAllWithoutReloader": {
			reason: "nothing would read what it adds",
			values: []string{"reloader.autoReloadAll=true", "reloader.enabled=false"},
			want:   "reloader.autoReloadAll needs reloader.enabled=true",
		},
		"CSIIntegrationWithoutReloader": {
			reason: "nothing would read what it adds",
			values: []string{"reloader.enableCSIIntegration=true", "reloader.enabled=false"},
			want:   "reloader.enableCSIIntegration needs reloader.enabled=true",
		},
		"FlagThatNeedsRights": {
			reason: "its watches would be refused",
			values: []string{"args={--enable-csi-integration}"},
			want:   "args has --enable-csi-integration; set the value reloader.enableCSIIntegration",
		},
		"FlagThatTheWebhookDependsOn": {
			reason: "the webhook would not be called for them",
			values: []string{"args={--settle=2s,--auto-reload-all}"},
			want:   "args has --auto-reload-all; set the value reloader.autoReloadAll",
		},
		"FlagOfAnAnnotation": {
			reason: "the webhook would not be called for those",
			values: []string{"args={--auto-annotation=example.org/auto}"},
			want:   "args has --auto-annotation; set the value reloader.annotations",
		},
		"KindWithoutVersion": {
			reason: "rights need the group, rules both",
			values: []string{"workloadKinds[0].apiVersion=a.io", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t", "workloadKinds[0].resource=as"},
			want:   `workloadKinds[0].apiVersion is "a.io"; write group/version`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t.Context(), helm, templateArgs(t, test.values)...)
			assert.ErrorContains(t, err, test.want, test.reason)
		})
	}
}

// The selector of the chart reads the same in the webhook and in the flag.
func TestChartWritesTheSelectorAsAFlag(t *testing.T) {
	t.Parallel()
	values := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(values, []byte(`
namespaceSelector:
  matchLabels: {team: a}
  matchExpressions:
    - {key: env, operator: In, values: [dev, test]}
    - {key: env, operator: NotIn, values: [prod]}
    - {key: live, operator: Exists}
    - {key: retired, operator: DoesNotExist}
objectSelector:
  matchExpressions:
    - {key: tier, operator: NotIn, values: [db, cache]}
`), 0o600))
	out, err := run(t.Context(), tool(t, "helm", "helm"), append(templateArgs(t, nil), "--values", values)...)
	require.NoError(t, err)
	args, _, err := unstructured.NestedSlice(parse(t, out)["Deployment pod-reloader/pod-reloader"], "spec", "template", "spec", "containers")
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(args), "--namespace-selector=env in (dev,test),env notin (prod),live,!retired,team=a")
	assert.Contains(t, fmt.Sprint(args), "--object-selector=tier notin (db,cache)")
	assert.Contains(t, fmt.Sprint(list(parse(t, out)["MutatingWebhookConfiguration /pod-reloader"]["webhooks"])),
		"objectSelector:map[matchExpressions:[map[key:tier operator:NotIn values:[db cache]]]]")
}

// A kind in the values is in the configuration, in the rights and in the webhook's rules.
func TestChartTakesFurtherKinds(t *testing.T) {
	t.Parallel()
	rendered := template(t, tool(t, "helm", "helm"), "namespaces={my-app}",
		"workloadKinds[0].apiVersion=argoproj.io/v1alpha1", "workloadKinds[0].kind=Rollout",
		"workloadKinds[0].template=spec.template", "workloadKinds[0].resource=rollouts")
	text, _, err := unstructured.NestedString(rendered["ConfigMap pod-reloader/pod-reloader"], "data", "config.yaml")
	require.NoError(t, err)
	parsed, err := configuration.Parse([]byte(text))
	require.NoError(t, err, text)
	require.Len(t, parsed.WorkloadKinds, 1)
	assert.Equal(t, "argoproj.io/v1alpha1/Rollout=spec.template", parsed.WorkloadKinds[0].String())
	assert.Contains(t, fmt.Sprint(rendered["Deployment pod-reloader/pod-reloader"]), "--config=configmap:pod-reloader/pod-reloader")
	assert.Contains(t, fmt.Sprint(list(rendered["Role my-app/pod-reloader-workloads"]["rules"])),
		"map[apiGroups:[argoproj.io] resources:[rollouts] verbs:[get list watch patch]]")
	assert.Contains(t, fmt.Sprint(list(rendered["Role pod-reloader/pod-reloader"]["rules"])),
		"map[apiGroups:[] resourceNames:[pod-reloader] resources:[configmaps] verbs:[get list watch]]")
	assert.Contains(t, fmt.Sprint(list(rendered["MutatingWebhookConfiguration /pod-reloader"]["webhooks"])),
		"map[apiGroups:[argoproj.io] apiVersions:[v1alpha1] operations:[CREATE UPDATE] resources:[rollouts] scope:Namespaced]")
}

// Other kinds and namespaces: flags, rights and the webhook agree.
func TestChartFollowsWhatIsIgnored(t *testing.T) {
	t.Parallel()
	rendered := template(t, tool(t, "helm", "helm"), "reloader.ignoreJobs=true", "reloader.ignoreCronJobs=true",
		"namespacesToIgnore={dev,test}", "reloader.reloadStrategy=annotations", "env[0].name=ALERT_SINK", "env[0].value=slack",
		"envFrom[0].secretRef.name=alerts")
	deployment := fmt.Sprint(rendered["Deployment pod-reloader/pod-reloader"])
	assert.Contains(t, deployment, "--ignored-workload-types=jobs,cronjobs")
	assert.Contains(t, deployment, "--namespaces-to-ignore=dev,test")
	assert.Contains(t, deployment, "--reload-strategy=annotations")
	assert.Contains(t, deployment, "map[name:ALERT_SINK value:slack]")
	assert.Contains(t, deployment, "envFrom:[map[secretRef:map[name:alerts]]]")
	webhooks := fmt.Sprint(list(rendered["MutatingWebhookConfiguration /pod-reloader"]["webhooks"]))
	assert.NotContains(t, webhooks, "jobs]")
	assert.Contains(t, webhooks, "operator:NotIn values:[kube-system dev test]")
	assert.NotContains(t, fmt.Sprint(rendered["ClusterRole /pod-reloader"]), "jobs]")
}
