package repository

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/options"
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
			reason: "one would be ignored without a message",
			values: []string{"namespaces={a}", "namespaceSelector.matchLabels.a=b"},
			want:   "cannot be combined",
		},
		"FailurePolicy": {
			reason: "the API server would reject it later, with another message",
			values: []string{"webhook.failurePolicy=ignore"},
			want:   "at '/webhook/failurePolicy': value must be one of 'Ignore', 'Fail'",
		},
		"KindWithoutResource": {
			reason: "rights and rules need the plural, which cannot be derived from the kind",
			values: []string{"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t"},
			want:   "at '/workloadKinds/0': missing property 'resource'",
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
		"UnknownValue": {
			reason: "a misspelt value would have no effect",
			values: []string{"webhook.failurePolcy=Fail"},
			want:   "at '/webhook': additional properties 'failurePolcy' not allowed",
		},
		"UnknownValueAtTheTop": {
			reason: "the same without a parent",
			values: []string{"replicaCount=3"},
			want:   "at '': additional properties 'replicaCount' not allowed",
		},
		"Type": {
			reason: "the API server would report the object, not the value",
			values: []string{"replicas=two"},
			want:   "at '/replicas': got string, want integer",
		},
		"Digest": {
			reason: "a short digest names no image",
			values: []string{"image.digest=sha256:abc"},
			want:   "at '/image/digest': 'sha256:abc' does not match pattern",
		},
		"SelectorValue": {
			reason: "YAML takes true for a boolean, a label is a string",
			values: []string{"namespaceSelector.matchLabels.a=true"},
			want:   "at '/namespaceSelector/matchLabels/a': got boolean, want string",
		},
		"LabelOfTheChart": {
			reason: "it would be there twice, and the selector depends on it",
			values: []string{`commonLabels.app\.kubernetes\.io/name=a`},
			want:   "commonLabels has app.kubernetes.io/name, which the chart sets",
		},
		"FlagOfAPort": {
			reason: "the Service and the probes would use the other port",
			values: []string{"args={--webhook-bind-address=:10250}"},
			want:   "args has --webhook-bind-address; set the value webhook.port",
		},
		"FlagOfTheConfiguration": {
			reason: "the flag would be there twice, and the last one win",
			values: []string{"args={--config=/etc/a.yaml}", "workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t", "workloadKinds[0].resource=as"},
			want:   "args has --config; set the value workloadKinds",
		},
		"Ports": {
			reason: "a listener would fail at the start",
			values: []string{"webhook.port=8080"},
			want:   "webhook.port, metrics.port and health.port must be different, and are 8080, 8080 and 8081",
		},
		"AccountWithoutName": {
			reason: "the pods would run as default, which has no rights",
			values: []string{"serviceAccount.create=false"},
			want:   "name an existing account in serviceAccount.name",
		},
		"IssuerInAnotherMode": {
			reason: "nothing would ask the issuer",
			values: []string{"webhook.certificates.issuerRef.name=ca"},
			want:   "webhook.certificates.mode is self-managed: set mode=cert-manager",
		},
		"GivenSecretWithCertManager": {
			reason: "cert-manager would overwrite it",
			values: []string{"webhook.certificates.mode=cert-manager", "webhook.certificates.existingSecret=tls"},
			want:   "webhook.certificates.mode is cert-manager: set mode=given",
		},
		"IssuerWithoutName": {
			reason: "cert-manager would report it late",
			values: []string{"webhook.certificates.issuerRef.kind=ClusterIssuer"},
			want:   "at '/webhook/certificates/issuerRef'",
		},
		"BudgetOfAllReplicas": {
			reason: "a drain would hang",
			values: []string{"podDisruptionBudget.minAvailable=2"},
			want:   "podDisruptionBudget.minAvailable is 2 with 2 replicas, and no node that runs one could be drained",
		},
		"TwoMonitors": {
			reason: "samples would be counted twice",
			values: []string{"metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true"},
			want:   "would scrape each pod twice: enable one of them",
		},
		"PodMonitorOfSecureMetrics": {
			reason: "each scrape would be refused",
			values: []string{"metrics.podMonitor.enabled=true", "metrics.secure=true"},
			want:   "needs metrics.podMonitor.authorization",
		},
		"UnknownAlert": {
			reason: "the misspelt alert would stay",
			values: []string{"metrics.prometheusRule.enabled=true", "metrics.prometheusRule.without={PodReloaderWatchFail}"},
			want:   `has "PodReloaderWatchFail", which is none of the alerts PodReloaderIsAbsent, PodReloaderHasNoLeader`,
		},
		"GracePeriod": {
			reason: "admission is served for 10 seconds after SIGTERM",
			values: []string{"terminationGracePeriodSeconds=5"},
			want:   "at '/terminationGracePeriodSeconds': minimum: got 5, want 20",
		},
		"ReloadStrategy": {
			reason: "the program would not start",
			values: []string{"reloader.reloadStrategy=rollout"},
			want:   "at '/reloader/reloadStrategy': value must be one of",
		},
		"Selector": {
			reason: "the flag could not be written",
			values: []string{"objectSelector.matchExpressions[0].key=a", "objectSelector.matchExpressions[0].operator=in"},
			want:   "at '/objectSelector/matchExpressions/0/operator': value must be one of",
		},
		"UnknownCertificateMode": {
			reason: "there would be no certificate",
			values: []string{"webhook.certificates.mode=acme"},
			want:   "at '/webhook/certificates/mode': value must be one of",
		},
		"CertManagerOfBefore": {
			reason: "it would have no effect",
			values: []string{"certManager.enabled=true"},
			want:   "certManager.enabled was replaced: set webhook.certificates.mode",
		},
		"GivenWithoutCA": {
			reason: "the API server would trust no replica, and the installation would be in direct mode without a message",
			values: []string{"webhook.certificates.mode=given"},
			want:   "webhook.certificates.mode=given needs webhook.certificates.caBundle",
		},
		"GivenCAInBase64": {
			reason: "it would be encoded twice",
			values: []string{"webhook.certificates.mode=given", "webhook.certificates.caBundle=LS0tLS1CRUdJTi"},
			want:   "webhook.certificates.caBundle has no PEM block",
		},
		"GivenSecretInAnotherMode": {
			reason: "it would not be used",
			values: []string{"webhook.certificates.existingSecret=mine"},
			want:   "webhook.certificates.mode is self-managed: set mode=given",
		},
		"CertificateModeAsAFlag": {
			reason: "volumes and rights follow the value",
			values: []string{"args={--certificate-mode=files}"},
			want:   "args has --certificate-mode; set the value webhook.certificates.mode",
		},
		"TenantWithoutNamespaces": {
			reason: "there would be no right to any workload",
			values: []string{"rbac.scope=namespaces", "webhook.enabled=false"},
			want:   "rbac.scope=namespaces needs namespaces, those to handle: to handle that of the release, set namespaces={pod-reloader}",
		},
		"TenantWithWebhook": {
			reason: "a tenant may not create a webhook configuration, and the installation would fail halfway",
			values: []string{"rbac.scope=namespaces", "namespaces={a}"},
			want:   "rbac.scope=namespaces creates nothing for the whole cluster: set webhook.enabled=false, or have an administrator",
		},
		"TenantWithClusterWideObjects": {
			reason: "all of them at once, not one after the other",
			values: []string{"rbac.scope=namespaces", "namespaces={a}", "metrics.secure=true", "guard.enabled=true", "flowSchema.enabled=true"},
			want:   "set flowSchema.enabled=false and guard.enabled=false and metrics.secure=false and webhook.enabled=false",
		},
		"UnknownScope": {
			reason: "rights would be wider than intended",
			values: []string{"rbac.scope=namespace"},
			want:   "at '/rbac/scope': value must be one of 'cluster', 'namespaces'",
		},
		"LeaseAsLongAsTheDeadline": {
			reason: "two leaders would overlap; the pods would not start",
			values: []string{"leaderElection.leaseDuration=10s"},
			want:   "leaderElection.leaseDuration is 10s, and a leader would go on for renewDeadline=10s while another one begins",
		},
		"DeadlineWithoutRetry": {
			reason: "the pods would not start",
			values: []string{"leaderElection.leaseDuration=15s", "leaderElection.retryPeriod=9s"},
			want:   "leaderElection.renewDeadline is 10s, and must be more than 1.2 times retryPeriod, which is 9s",
		},
		"LeaseInMinutes": {
			reason: "the chart compares seconds",
			values: []string{"leaderElection.leaseDuration=1m"},
			want:   "at '/leaderElection/leaseDuration': '1m' does not match pattern",
		},
		"ClientNamesWithoutCA": {
			reason: "the program would not start",
			values: []string{"webhook.clientCA.names={kube-apiserver}"},
			want:   "webhook.clientCA.names needs webhook.clientCA.configMap",
		},
		"NamespaceTwice": {
			reason: "its Role would be rendered twice",
			values: []string{"namespaces={a,a}"},
			want:   "at '/namespaces': items at 0 and 1 are equal",
		},
		"NamespaceThatCannotExist": {
			reason: "the API server would reject the Role, and the installation would fail halfway",
			values: []string{"namespaces={My_App}"},
			want:   "at '/namespaces/0': 'My_App' does not match pattern",
		},
		"RemovedGroup": {
			reason: "a template would fail with an error message of Go",
			values: []string{"metrics=null"},
			want:   "missing property 'metrics'",
		},
		"RemovedFailurePolicy": {
			reason: "the default of the API server is Fail",
			values: []string{"webhook.failurePolicy=null"},
			want:   "at '/webhook': missing property 'failurePolicy'",
		},
		"NameThatIsNoLabel": {
			reason: "the API server would report each object",
			values: []string{"nameOverride=a/b"},
			want:   "at '/nameOverride': 'a/b' does not match pattern",
		},
		"AccountThatCannotExist": {
			reason: "the pods would not be created",
			values: []string{"serviceAccount.name=Mine"},
			want:   "at '/serviceAccount/name': 'Mine' does not match pattern",
		},
		"TagInTheRepository": {
			reason: "the reference would have two tags",
			values: []string{"image.repository=registry.example.com:5000/pod-reloader:1.2"},
			want:   "at '/image/repository': 'registry.example.com:5000/pod-reloader:1.2' does not match pattern",
		},
		"TagWithSpace": {
			reason: "the pods would have InvalidImageName",
			values: []string{"image.tag=1.0 "},
			want:   "at '/image/tag': '1.0 ' does not match pattern",
		},
		"TwoArgumentsInOne": {
			reason: "the program would not start",
			values: []string{"args={--settle 2s}"},
			want:   "at '/args/0': '--settle 2s' does not match pattern",
		},
		"NoReplicaCanBeReplaced": {
			reason: "the API server rejects it, and the installation would fail halfway",
			values: []string{"updateStrategy.rollingUpdate.maxSurge=0"},
			want:   "no replica could ever be replaced: set one of them to 1",
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

// A cluster without the kinds of another program is reported before anything is installed. apps/v1/Deployment is in the list
// of a cluster only, not in the one that Helm assumes without one.
func TestChartNamesMissingPrograms(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	cluster := []string{"--api-versions", "apps/v1/Deployment"}
	certManager := "webhook.certificates.mode=cert-manager"
	_, err := run(t.Context(), helm, append(templateArgs(t, []string{certManager}), cluster...)...)
	require.ErrorContains(t, err, "the cluster has no cert-manager (cert-manager.io/v1)")
	for _, values := range [][]string{nil, {certManager, "webhook.enabled=false"}} {
		_, err = run(t.Context(), helm, append(templateArgs(t, values), cluster...)...)
		require.NoError(t, err, "nothing needs it with %v", values)
	}
	cluster = append(cluster, "--api-versions", "cert-manager.io/v1,cert-manager.io/v1/Certificate")
	_, err = run(t.Context(), helm, append(templateArgs(t, []string{certManager}), cluster...)...)
	require.NoError(t, err)
	for key, kind := range map[string]string{"serviceMonitor": "ServiceMonitor", "podMonitor": "PodMonitor", "prometheusRule": "PrometheusRule"} {
		args := append(templateArgs(t, []string{"metrics." + key + ".enabled=true"}), cluster...)
		_, err = run(t.Context(), helm, args...)
		require.ErrorContains(t, err, "the cluster has no kind "+kind)
		_, err = run(t.Context(), helm, append(args, "--api-versions", "monitoring.coreos.com/v1/"+kind)...)
		require.NoError(t, err)
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

// A certificate of the user is mounted, its CA is in the webhook configuration, and no right to certificates is granted.
func TestChartTakesAGivenCertificate(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	ca := "-----BEGIN CERTIFICATE-----"
	given := "webhook.certificates.mode=given"
	rendered := template(t, helm, given, "webhook.certificates.existingSecret=mine", "webhook.certificates.caBundle="+ca)
	assert.Contains(t, fmt.Sprint(list(rendered["MutatingWebhookConfiguration /pod-reloader"]["webhooks"])),
		"caBundle:"+base64.StdEncoding.EncodeToString([]byte(ca)))
	deployment := fmt.Sprint(rendered["Deployment pod-reloader/pod-reloader"])
	assert.Contains(t, deployment, "secret:map[secretName:mine]")
	assert.Contains(t, deployment, "--webhook-tls-directory=/etc/pod-reloader/tls")
	assert.NotContains(t, rendered, "ClusterRole /pod-reloader-certificates")
	assert.NotContains(t, fmt.Sprint(rendered["Role pod-reloader/pod-reloader"]), "pod-reloader-certificates")

	rendered = template(t, helm, given, "webhook.annotations.inject=yes")
	assert.NotContains(t, fmt.Sprint(rendered["MutatingWebhookConfiguration /pod-reloader"]), "caBundle", "another tool sets it")
	assert.Contains(t, fmt.Sprint(rendered["Deployment pod-reloader/pod-reloader"]), "secret:map[secretName:pod-reloader-tls]")
}

// A tenant's installation has no object outside of the namespaces that are listed and the release's own, whatever else is set that
// a tenant can have.
func TestChartOfATenantStaysInItsNamespaces(t *testing.T) {
	t.Parallel()
	out, err := run(t.Context(), tool(t, "helm", "helm"), templateArgs(t, []string{
		"rbac.scope=namespaces", "namespaces={my-app,other}", "webhook.enabled=false", "networkPolicy.enabled=true",
		"metrics.serviceMonitor.enabled=true", "metrics.prometheusRule.enabled=true", "metrics.dashboard.enabled=true",
		"reloader.isArgoRollouts=true", "reloader.enableCSIIntegration=true", "reloader.runCronJobs=true", "reloader.recreateJobs=true",
		"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t", "workloadKinds[0].resource=as",
		"referents[0].id=b", "referents[0].gvr.group=b.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=bs",
	})...)
	require.NoError(t, err)
	rendered := parse(t, out)
	for key, object := range rendered {
		metadata, _ := object["metadata"].(map[string]any)
		assert.Contains(t, []any{"pod-reloader", "my-app", "other"}, metadata["namespace"], key)
	}
	for _, namespace := range []string{"my-app", "other"} {
		assert.Contains(t, rendered, "Role "+namespace+"/pod-reloader-workloads")
		assert.Contains(t, rendered, "RoleBinding "+namespace+"/pod-reloader-workloads")
	}
	assert.Contains(t, arguments(t, rendered["Deployment pod-reloader/pod-reloader"]), any("--namespaces=my-app,other"))
}

// The flags of the program accept what the chart accepts.
func TestChartPassesLeaderElectionAndClientNames(t *testing.T) {
	t.Parallel()
	rendered := template(t, tool(t, "helm", "helm"), "leaderElection.leaseDuration=60s", "leaderElection.renewDeadline=40s",
		"leaderElection.retryPeriod=5s", "webhook.clientCA.configMap=callers", "webhook.clientCA.names={kube-apiserver,second}",
		"lifecycle.preStop.sleep.seconds=5")
	deployment := rendered["Deployment pod-reloader/pod-reloader"]
	var args []string
	for _, arg := range arguments(t, deployment) {
		args = append(args, fmt.Sprint(arg))
	}
	flags := options.NewFlags()
	require.NoError(t, flags.Parse(args))
	o, err := flags.Complete(options.Environment{Getenv: func(key string) string { return map[string]string{"POD_NAMESPACE": "a"}[key] }})
	require.NoError(t, err)
	assert.Equal(t, options.Election{
		Enabled: true, Namespace: "a", LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 5 * time.Second,
	}, o.Election)
	assert.Equal(t, []string{"kube-apiserver", "second"}, o.Webhook.ClientNames)
	assert.Equal(t, "/etc/pod-reloader/client-ca/ca.crt", o.Webhook.ClientCA)
	assert.Contains(t, fmt.Sprint(field(t, deployment, "spec", "template", "spec", "volumes")), "configMap:map[name:callers]")
	assert.Equal(t, map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": float64(5)}}}, container(t, deployment)["lifecycle"])
}

// Values that a user may remove by null, such as one whose lines are all comments, have no effect.
func TestChartAcceptsRemovedDefaults(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for _, value := range []string{
		"resources", "securityContext", "podSecurityContext", "podSecurityContext=null,openshift=enabled,affinity", "tolerations",
		"namespaces", "namespacesToIgnore", "namespaceSelector", "objectSelector", "args", "env", "topologySpreadConstraints", "imagePullSecrets",
		"commonLabels", "image.tag", "image.digest", "nameOverride", "fullnameOverride", "log.level", "workloadKinds", "referents",
		"reloader.annotations", "webhook.matchConditions", "webhook.annotations", "webhook.certificates.issuerRef", "networkPolicy.enabled=true,networkPolicy.metricsFrom",
		"metrics.prometheusRule.enabled=true,metrics.prometheusRule.without", "metrics.dashboard.enabled=true,metrics.dashboard.labels",
		"serviceAccount.annotations", "commonAnnotations", "test.labels", "lifecycle", "updateStrategy.type=Recreate,updateStrategy.rollingUpdate",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			out, err := run(t.Context(), helm, templateArgs(t, []string{value + "=null"})...)
			require.NoError(t, err)
			rendered := parse(t, out)
			assert.NotEmpty(t, container(t, rendered["Deployment pod-reloader/pod-reloader"])["image"])
		})
	}
}
