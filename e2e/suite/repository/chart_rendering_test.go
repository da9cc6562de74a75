package repository

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/certs/rotate"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// The permission to create Secrets is granted only where pod-reloader creates one: the digest key, its certificates, or the manifest of a
// Job.
func TestChartGrantsToCreateSecretsWhereOneIsCreated(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	const given, certManager = "digestKey.existingSecret=mine", "webhook.certificates.mode=cert-manager"
	tests := map[string]struct {
		values []string
		create bool
	}{
		"Default":      {create: true},
		"CertManager":  {values: []string{certManager}, create: true},
		"SelfManaged":  {values: []string{given}, create: true},
		"Given":        {values: []string{given, certManager}},
		"GivenTenant":  {values: []string{given, "rbac.scope=namespaces", "namespaces={my-app}", "webhook.enabled=false"}},
		"RecreateJobs": {values: []string{given, certManager, "reloader.recreateJobs=true"}, create: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := fmt.Sprint(list(template(t, helm, test.values...)["Role pod-reloader/pod-reloader"]["rules"]))
			const create = "map[apiGroups:[] resources:[secrets] verbs:[create]]"
			if test.create {
				assert.Contains(t, rules, create)
			} else {
				assert.NotContains(t, rules, create)
			}
			if slices.Contains(test.values, "namespaces={my-app}") {
				assert.Contains(t, rules, "map[apiGroups:[] resourceNames:[mine] resources:[secrets] verbs:[get list watch]]")
			}
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

// A kind in the values is in the configuration, in the permissions and in the webhook's rules.
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

// Other kinds and namespaces: flags, permissions and the webhook agree.
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

// A certificate of the user is mounted, its CA is in the webhook configuration, and no permission on certificates is granted.
func TestChartTakesAGivenCertificate(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	ca := "-----BEGIN CERTIFICATE-----"
	given := "webhook.certificates.mode=given"
	rendered := template(t, helm, given, "webhook.certificates.existingSecret=mine", "webhook.certificates.caBundle="+ca)
	webhook := rendered["MutatingWebhookConfiguration /pod-reloader"]
	assert.Contains(t, fmt.Sprint(list(webhook["webhooks"])),
		"caBundle:"+base64.StdEncoding.EncodeToString([]byte(ca)))
	deployment := fmt.Sprint(rendered["Deployment pod-reloader/pod-reloader"])
	assert.Contains(t, deployment, "secret:map[secretName:mine]")
	assert.Contains(t, deployment, "--webhook-tls-directory=/etc/pod-reloader/tls")
	assert.NotContains(t, rendered, "ClusterRole /pod-reloader-certificates")
	assert.NotContains(t, fmt.Sprint(rendered["Role pod-reloader/pod-reloader"]), "pod-reloader-certificates")
	assert.Equal(t, map[string]any{rotate.SharedBundle: "true"}, field(t, webhook, "metadata", "annotations"), "the replicas that are replaced leave the CA")

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
		"reloader.isArgoRollouts=true", "reloader.isOpenshift=true", "reloader.enableCSIIntegration=true", "reloader.runCronJobs=true", "reloader.recreateJobs=true",
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

// A Role cannot grant to read an object without namespace: with `namespaces`, a ClusterRole grants that, and nothing else.
func TestChartGrantsReferentsOfTheClusterByAClusterRole(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	referents := []string{
		"referents[0].id=b", "referents[0].gvr.group=b.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=bs",
		"referents[1].id=c", "referents[1].gvr.group=c.io", "referents[1].gvr.version=v1", "referents[1].gvr.resource=cs",
	}
	const role, binding, inCluster = "ClusterRole /pod-reloader", "ClusterRoleBinding /pod-reloader", "referents[0].scope=Cluster"
	const b, c = "map[apiGroups:[b.io] resources:[bs] verbs:[get list watch patch]]", "map[apiGroups:[c.io] resources:[cs] verbs:[get list watch]]"

	rendered := template(t, helm, append(referents, inCluster, "referents[0].publish=true", "namespaces={my-app,other}")...)
	assert.Equal(t, "["+b+"]", fmt.Sprint(list(rendered[role]["rules"])))
	assert.Contains(t, rendered, binding)
	for _, namespace := range []string{"my-app", "other"} {
		rules := fmt.Sprint(list(rendered["Role "+namespace+"/pod-reloader-workloads"]["rules"]))
		assert.NotContains(t, rules, "b.io")
		assert.Contains(t, rules, c)
	}

	rendered = template(t, helm, append(referents, inCluster, "referents[0].publish=true")...)
	assert.Contains(t, fmt.Sprint(list(rendered[role]["rules"])), b+" "+c)
	rendered = template(t, helm, append(referents, "namespaces={my-app}")...)
	assert.NotContains(t, rendered, role)
	assert.NotContains(t, rendered, binding)
	rendered = template(t, helm, append(referents, inCluster, "namespaces={my-app}", "rbac.create=false")...)
	assert.NotContains(t, rendered, role)
}

// Events about an object without namespace are in the namespace default, where an installation for other namespaces has no permission.
func TestChartGrantsEventsAboutReferentsOfTheCluster(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	referent := []string{"referents[0].id=b", "referents[0].gvr.group=b.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=bs"}
	const role, inCluster, published = "Role default/pod-reloader-events", "referents[0].scope=Cluster", "referents[0].publish=true"

	rendered := template(t, helm, append(referent, "namespaces={my-app}", inCluster, published)...)
	assert.Equal(t, "[map[apiGroups:[events.k8s.io] resources:[events] verbs:[create list patch]]]", fmt.Sprint(list(rendered[role]["rules"])))
	assert.Contains(t, rendered, "RoleBinding default/pod-reloader-events")
	for name, values := range map[string][]string{
		"all namespaces":       {inCluster, published},
		"one of the list":      {"namespaces={my-app,default}", inCluster, published},
		"nothing is published": {"namespaces={my-app}", inCluster},
		"in namespaces":        {"namespaces={my-app}", published},
		"no permissions":       {"namespaces={my-app}", inCluster, published, "rbac.create=false"},
	} {
		assert.NotContains(t, template(t, helm, append(referent, values...)...), role, name)
	}
}

// With autoReloadAll, the program would restart itself for each renewed certificate that its pods mount, although it reads the files.
func TestChartExcludesItselfFromReloads(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	const all = "reloader.autoReloadAll=true"
	for name, test := range map[string]struct {
		values []string
		label  string
		want   any
	}{
		"Default":       {label: "pod-reloader.cs.sap.com/ignored"},
		"AutoReloadAll": {values: []string{all}, label: "pod-reloader.cs.sap.com/ignored", want: "true"},
		"Prefix":        {values: []string{all, "annotationPrefix=example.com"}, label: "example.com/ignored", want: "true"},
		"OwnLabel": {
			values: []string{all, `commonLabels.pod-reloader\.cs\.sap\.com/ignored=no`}, label: "pod-reloader.cs.sap.com/ignored", want: "no",
		},
	} {
		labels, _ := field(t, template(t, helm, test.values...)["Deployment pod-reloader/pod-reloader"], "metadata", "labels").(map[string]any)
		assert.Equal(t, test.want, labels[test.label], name)
	}
}

// Where the program follows no Jobs, it has no permission on them. Where it creates none again, it has none to list the Secrets of its
// namespace.
func TestChartGrantsNothingForJobsThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	const jobs, secrets = "map[apiGroups:[batch] resources:[jobs] verbs:[list watch]]", "resources:[secrets] verbs:[get list delete]]"
	listed := regexp.MustCompile(`map\[apiGroups:\[\] resources:\[secrets\] verbs:\[[^\]]*(get|list|watch)`)
	for value, want := range map[string]struct{ follows, recreates bool }{
		"reloader.enabled=true": {follows: true}, "reloader.recreateJobs=true": {true, true}, "reloader.enabled=false": {}, "reloader.ignoreJobs=true": {},
	} {
		for _, scope := range []string{"namespaces={my-app}", "secrets.enabled=false"} {
			t.Run(value+","+scope, func(t *testing.T) {
				t.Parallel()
				rendered := template(t, helm, value, scope)
				workloads := rendered["Role my-app/pod-reloader-workloads"]
				if workloads == nil {
					workloads = rendered["ClusterRole /pod-reloader"]
				}
				assert.Equal(t, want.follows, strings.Contains(fmt.Sprint(list(workloads["rules"])), jobs))
				own := fmt.Sprint(list(rendered["Role pod-reloader/pod-reloader"]["rules"]))
				assert.Equal(t, want.recreates, strings.Contains(own, secrets))
				assert.Equal(t, want.recreates, listed.MatchString(own), "no Secret without a name")
			})
		}
	}
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
		Enabled: true, Namespace: "a", Lease: "pod-reloader", LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 5 * time.Second,
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
		"commonLabels", "global", "image.tag", "image.digest", "nameOverride", "fullnameOverride", "log.level", "workloadKinds", "referents",
		"reloader.annotations", "webhook.matchConditions", "webhook.annotations", "webhook.certificates.issuerRef", "networkPolicy.enabled=true,networkPolicy.metricsFrom",
		"metrics.prometheusRule.enabled=true,metrics.prometheusRule.without", "metrics.dashboard.enabled=true,metrics.dashboard.labels",
		"serviceAccount.annotations", "commonAnnotations", "test.labels", "lifecycle", "updateStrategy.type=Recreate,updateStrategy.rollingUpdate",
		"guard.enabled=true,reloader.annotations", "podDisruptionBudget.minAvailable", "webhook.clientCA.configMap",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			out, err := run(t.Context(), helm, templateArgs(t, []string{value + "=null"})...)
			require.NoError(t, err)
			rendered := parse(t, out)
			deployment := rendered["Deployment pod-reloader/pod-reloader"]
			assert.NotEmpty(t, container(t, deployment)["image"])
			assert.NotContains(t, arguments(t, deployment), "--webhook-client-ca=/etc/pod-reloader/client-ca/ca.crt")
			assert.Contains(t, field(t, rendered["PodDisruptionBudget pod-reloader/pod-reloader"], "spec"), "maxUnavailable")
		})
	}
}

// What a list of namespaces leaves for the whole cluster is what the documents name: docs/installing.md, "One namespace only".
func TestChartGrantsForTheWholeClusterWhatNoRoleCan(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	const certManager = "webhook.certificates.mode=cert-manager"
	for name, tc := range map[string]struct{ values, want []string }{
		"SelfManaged": {want: []string{"ClusterRole /pod-reloader-certificates"}},
		"CertManager": {values: []string{certManager}},
		"Direct":      {values: []string{"webhook.enabled=false"}},
		"SecureMetrics": {
			values: []string{certManager, "metrics.secure=true"}, want: []string{"ClusterRole /pod-reloader-metrics-auth"},
		},
		"Referent": {
			values: []string{
				certManager, "referents[0].id=b", "referents[0].gvr.group=b.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=bs",
				"referents[0].scope=Cluster",
			},
			want: []string{"ClusterRole /pod-reloader"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bound := map[string]bool{}
			for _, object := range template(t, helm, append(tc.values, "namespaces={a}")...) {
				if object["kind"] == "ClusterRoleBinding" {
					bound[fmt.Sprint("ClusterRole /", field(t, object, "roleRef", "name"))] = true
				}
			}
			assert.ElementsMatch(t, tc.want, slices.Collect(maps.Keys(bound)))
		})
	}
}

// Server-side apply refuses two items of the same name.
func TestChartRendersEachPullSecretOnce(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for name, tc := range map[string]struct{ global, own, want string }{
		"None":         {global: `[]`, own: `[]`, want: "<nil>"},
		"NameInBoth":   {global: `["a"]`, own: `[{"name":"a"}]`, want: "[map[name:a]]"},
		"ObjectInBoth": {global: `[{"name":"b"},"a"]`, own: `[{"name":"a"},{"name":"c"}]`, want: "[map[name:b] map[name:a] map[name:c]]"},
		"TwiceInOne":   {global: `["a",{"name":"a"}]`, own: `[{"name":"b"},{"name":"b"}]`, want: "[map[name:a] map[name:b]]"},
		"NumberAsName": {global: `["1"]`, own: `[{"name":"1"}]`, want: "[map[name:1]]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := renderJSON(t, helm, map[string]string{"global.imagePullSecrets": tc.global, "imagePullSecrets": tc.own})
			pod, _ := field(t, rendered[deployment], "spec", "template", "spec").(map[string]any)
			assert.Equal(t, tc.want, fmt.Sprint(pod["imagePullSecrets"]))
			check, _ := field(t, rendered["Pod pod-reloader/pod-reloader-test"], "spec").(map[string]any)
			assert.Equal(t, tc.want, fmt.Sprint(check["imagePullSecrets"]), "the pod of helm test")
		})
	}
}
