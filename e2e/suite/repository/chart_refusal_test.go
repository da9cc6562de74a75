package repository

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusal is a set of values that the chart refuses.
type refusal struct {
	reason string
	values []string
	want   string
}

func requireRefusals(t *testing.T, all map[string]refusal) {
	t.Helper()
	helm := tool(t, "helm", "helm")
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t.Context(), helm, templateArgs(t, r.values)...)
			assert.ErrorContains(t, err, r.want, r.reason)
		})
	}
}

// Each value is possible, but not beside the others: the templates refuse them.
func TestChartRefusesValuesThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	requireRefusals(t, map[string]refusal{
		"NamespacesAndSelector": {
			reason: "one would be ignored without a message",
			values: []string{"namespaces={a}", "namespaceSelector.matchLabels.a=b"},
			want:   "cannot be combined",
		},
		"NamespacesAndIgnored": {
			reason: "one of them is redundant",
			values: []string{"namespaces={a}", "namespacesToIgnore={b}"},
			want:   "take the ignored ones out of namespaces",
		},
		"TimeoutOfTheLoop": {
			reason: "the loop would give up each write before the API server stores it without the webhook",
			values: []string{"webhook.timeoutSeconds=10"},
			want:   "webhook.timeoutSeconds is 10, and pod-reloader gives up a write of its own after 10 seconds",
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
		"RunCronJobsWithoutReloader": {
			reason: "only annotations of Reloader ask for it: it would grant permissions that nothing uses",
			values: []string{"reloader.runCronJobs=true", "reloader.enabled=false"},
			want:   "reloader.runCronJobs needs reloader.enabled=true",
		},
		"RecreateJobsWithoutReloader": {
			reason: "only annotations of Reloader ask for it: it would grant permissions that nothing uses",
			values: []string{"reloader.recreateJobs=true", "reloader.enabled=false"},
			want:   "reloader.recreateJobs needs reloader.enabled=true",
		},
		"FailForItself": {
			reason: "the API server would reject the upgrade that repairs it",
			values: []string{"webhook.failurePolicy=Fail", "reloader.autoReloadAll=true", "namespacesToIgnore={dev}"},
			want:   "would also reject the upgrade that repairs pod-reloader: set namespacesToIgnore={dev,pod-reloader}",
		},
		"FailForItselfInAList": {
			reason: "the same for an installation for some namespaces",
			values: []string{"webhook.failurePolicy=Fail", "reloader.autoReloadAll=true", "namespaces={a,pod-reloader}"},
			want:   "leave the release's namespace, pod-reloader, out of namespaces, or set webhook.failurePolicy=Ignore",
		},
		"FailForItsAnnotation": {
			reason: "the webhook is called for its own Deployment as well",
			values: []string{"webhook.failurePolicy=Fail", `commonAnnotations.secret\.reloader\.stakater\.com/reload=a`},
			want:   "webhook.failurePolicy=Fail with the annotation secret.reloader.stakater.com/reload in commonAnnotations: while no replica answers",
		},
		"FailForAnAnnotationOfItsPods": {
			reason: "the same for those of the template, in the dialect of pod-reloader and in a list of namespaces",
			values: []string{"webhook.failurePolicy=Fail", `podAnnotations.example\.com/secrets=a`, "annotationPrefix=example.com", "namespaces={a,pod-reloader}"},
			want:   "webhook.failurePolicy=Fail with the annotation example.com/secrets in podAnnotations: while no replica answers",
		},
		"FailForAnAnnotationOfAnotherName": {
			reason: "the same for a name that a flag gives an annotation",
			values: []string{"webhook.failurePolicy=Fail", `podAnnotations.example\.com/auto=a`, `reloader.annotations.auto-annotation=example.com/auto`},
			want:   "webhook.failurePolicy=Fail with the annotation example.com/auto in podAnnotations: while no replica answers",
		},
		"FlagThatNeedsPermissions": {
			reason: "its watches would be refused",
			values: []string{"args={--enable-csi-integration}"},
			want:   "args has --enable-csi-integration; set the value reloader.enableCSIIntegration",
		},
		"FlagOfCronJobs": {
			reason: "the permissions would be missing, or be those of reloader.recreateJobs alone",
			values: []string{"args={--run-cronjobs}"},
			want:   "args has --run-cronjobs; set the value reloader.runCronJobs",
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
			reason: "the pods would run as default, which has no permissions",
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
			reason: "volumes and permissions follow the value",
			values: []string{"args={--certificate-mode=files}"},
			want:   "args has --certificate-mode; set the value webhook.certificates.mode",
		},
		"TenantWithoutNamespaces": {
			reason: "there would be no permission on any workload",
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
		"TenantWithReferentOfTheCluster": {
			reason: "no Role can grant it, and what needs it would be held for good",
			values: []string{
				"rbac.scope=namespaces", "namespaces={a}", "webhook.enabled=false",
				"referents[0].id=b", "referents[0].gvr.group=b.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=bs", "referents[0].scope=Cluster",
			},
			want: "referents[0] has scope=Cluster, which needs a ClusterRole, and rbac.scope=namespaces creates nothing for the whole cluster: " +
				"leave it out, or have an administrator install with rbac.scope=cluster",
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
		"ClientNamesWithoutCA": {
			reason: "the program would not start",
			values: []string{"webhook.clientCA.names={kube-apiserver}"},
			want:   "webhook.clientCA.names needs webhook.clientCA.configMap",
		},
		"RemovedGroup": {
			reason: "a template would fail with an error message of Go",
			values: []string{"metrics=null"},
			want:   "missing property 'metrics'",
		},
		"NoReplicaCanBeReplaced": {
			reason: "the API server rejects it, and the installation would fail halfway",
			values: []string{"updateStrategy.rollingUpdate.maxSurge=0"},
			want:   "no replica could ever be replaced: set one of them to 1",
		},
		"KindWithoutVersion": {
			reason: "permissions need the group, rules both",
			values: []string{"workloadKinds[0].apiVersion=a.io", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t", "workloadKinds[0].resource=as"},
			want:   `workloadKinds[0].apiVersion is "a.io"; write group/version`,
		},
		"BuiltInKind": {
			reason: "the program would report the configuration as invalid later",
			values: []string{"workloadKinds[0].apiVersion=apps/v1beta2", "workloadKinds[0].kind=Deployment", "workloadKinds[0].resource=deployments", "workloadKinds[0].template=spec.template"},
			want:   "workloadKinds[0] is apps/Deployment, which is built in: leave it out",
		},
		"ReplicaSet": {
			reason: "the program would report the configuration as invalid later",
			values: []string{"workloadKinds[0].apiVersion=apps/v1", "workloadKinds[0].kind=ReplicaSet", "workloadKinds[0].resource=replicasets", "workloadKinds[0].template=spec.template"},
			want:   "workloadKinds[0] is apps/ReplicaSet, which does not replace its pods when its template changes: leave it out",
		},
		"KindTwice": {
			reason: "the program would report the configuration as invalid later",
			values: []string{"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].resource=as", "workloadKinds[0].template=spec", "workloadKinds[1].apiVersion=a.io/v2", "workloadKinds[1].kind=A", "workloadKinds[1].resource=as", "workloadKinds[1].template=spec"},
			want:   "workloadKinds[1] is a.io/A, which workloadKinds[0] is already, perhaps in another version: leave it out",
		},
		"TestWhereTheWebhookIsNotCalled": {
			reason: "helm test would always fail",
			values: []string{"test.namespace=kube-system"},
			want:   "test.namespace is kube-system, which is not handled",
		},
		"TestInAnotherNamespace": {
			reason: "the same for an installation for some namespaces",
			values: []string{"namespaces={a}", "test.namespace=b"},
			want:   "test.namespace is b, which is not handled",
		},
		"BudgetOfNothing": {
			reason: "a drain would hang",
			values: []string{"podDisruptionBudget.maxUnavailable=0"},
			want:   "podDisruptionBudget.maxUnavailable is 0, and no node that runs a replica could be drained",
		},
		"BudgetOfNothingWithRemovedMinimum": {
			reason: "null is the same as an empty value",
			values: []string{"podDisruptionBudget.minAvailable=null", "podDisruptionBudget.maxUnavailable=0"},
			want:   "podDisruptionBudget.maxUnavailable is 0, and no node that runs a replica could be drained",
		},
		"BudgetInPercent": {
			reason: "it is rounded up, and a drain would hang",
			values: []string{"podDisruptionBudget.minAvailable=60%"},
			want:   "podDisruptionBudget.minAvailable is 60% with 2 replicas, and no node that runs one could be drained",
		},
		"WithoutElection": {
			reason: "two replicas would run the loop",
			values: []string{"args={--leader-elect=false}"},
			want:   "args has --leader-elect, which the chart sets as the permissions need it: leave it out",
		},
		"FlagOfTheDigestKey": {
			reason: "the Role names the Secret",
			values: []string{"args={--digest-key-secret=mine}"},
			want:   "args has --digest-key-secret; set the value digestKey.existingSecret",
		},
		"FlagOfTheLease": {
			reason: "the chart checks the times of the value",
			values: []string{"args={--leader-election-lease-duration=5s}"},
			want:   "args has --leader-election-lease-duration; set the value leaderElection.leaseDuration",
		},
		"ConditionTwice": {
			reason: "the API server would reject the webhook configuration, and the installation would fail halfway",
			values: []string{"webhook.matchConditions[0].name=has-our-annotations", "webhook.matchConditions[0].expression=a == b"},
			want:   "webhook.matchConditions has has-our-annotations twice, or a condition of the chart has this name",
		},
		"VolumeOfTheChart": {
			reason: "the API server would reject the Deployment, and the installation would fail halfway",
			values: []string{"webhook.certificates.mode=cert-manager", "extraVolumes[0].name=tls", "extraVolumes[0].emptyDir.medium=Memory"},
			want:   "extraVolumes has tls, a volume of the chart: take another name",
		},
		"DenyAndWarn": {
			reason: "the API server would reject the binding, and the installation would fail halfway",
			values: []string{"guard.validationActions={Deny,Warn}"},
			want:   "guard.validationActions has both Deny and Warn",
		},
	})
}

// The Deployment of the release is not in scope, or a selector or a condition may leave it out.
func TestChartTakesFailForOtherWorkloads(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for _, value := range []string{
		"namespacesToIgnore={dev,pod-reloader}", "namespaces={a}", "namespaceSelector.matchLabels.a=b", "objectSelector.matchLabels.a=b",
		"webhook.matchConditions[0].name=a,webhook.matchConditions[0].expression=true == true", "webhook.enabled=false",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			rendered := template(t, helm, "webhook.failurePolicy=Fail", "reloader.autoReloadAll=true", value)
			assert.Contains(t, arguments(t, rendered["Deployment pod-reloader/pod-reloader"]), any("--auto-reload-all"))
			template(t, helm, "webhook.failurePolicy=Fail", `podAnnotations.secret\.reloader\.stakater\.com/reload=a`, value)
		})
	}
}

// The webhook is not called for the Deployment of the release.
func TestChartTakesFailWithAnnotationsOfOthers(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	template(t, helm, "webhook.failurePolicy=Fail", `podAnnotations.prometheus\.io/path=a`, `commonAnnotations.example\.com/auto=a`)
	template(t, helm, "webhook.failurePolicy=Fail", "reloader.enabled=false", `podAnnotations.secret\.reloader\.stakater\.com/reload=a`)
}

// The release's name is not in the schema. Helm takes names that a Service cannot have, before Kubernetes 1.34 also those that begin
// with a digit.
func TestChartRefusesReleaseNamesThatAServiceCannotHave(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for name, allowed := range map[string]bool{"my.release": false, "2nd": false, "a2": true, strings.Repeat("a", 53): true, strings.Repeat("a", 49) + "-b": true} {
		args := templateArgs(t, nil)
		args[slices.Index(args, "template")+1] = name
		_, err := run(t.Context(), helm, args...)
		if allowed {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, name+" cannot be the name of a Service: set fullnameOverride to lower-case letters, digits and hyphens, a letter first")
		_, err = run(t.Context(), helm, append(args, "--set", "fullnameOverride=second")...)
		require.NoError(t, err)
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
