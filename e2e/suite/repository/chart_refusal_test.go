package repository

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
