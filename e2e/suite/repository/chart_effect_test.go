package repository

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// effect is another value than the default, and what it is found in.
type effect struct {
	// value is in JSON.
	value string
	// with are values without which it has no effect, in JSON by path.
	with map[string]string
	// object is where the value is found, and text a part of it, as Go prints its fields. An empty text says that the object goes
	// or comes.
	object, text string
	// gone is a text that the value replaces.
	gone string
}

const (
	deployment    = "Deployment pod-reloader/pod-reloader"
	webhookObject = "MutatingWebhookConfiguration /pod-reloader"
	podTest       = "Pod pod-reloader/pod-reloader-test"
)

var (
	certManagerMode = map[string]string{"webhook.certificates.mode": `"cert-manager"`}
	givenMode       = map[string]string{"webhook.certificates.mode": `"given"`, "webhook.annotations": `{"a":"b"}`}
)

func enabled(path string) map[string]string { return map[string]string{path + ".enabled": "true"} }

// effects has each value of the chart.
var effects = map[string]effect{
	"global.imageRegistry":          {value: `"mirror.io"`, object: deployment, text: "image:mirror.io/pod-reloader:"},
	"global.imagePullSecrets":       {value: `["a"]`, object: deployment, text: "imagePullSecrets:[map[name:a]]"},
	"image.registry":                {value: `"mirror.io"`, object: deployment, text: "image:mirror.io/pod-reloader:"},
	"image.repository":              {value: `"a/b"`, object: deployment, text: "image:a/b:"},
	"image.tag":                     {value: `"1.2.3"`, object: deployment, text: "image:pod-reloader:1.2.3 "},
	"image.digest":                  {value: `"` + someDigest + `"`, with: map[string]string{"image.tag": `"1.2.3"`}, object: deployment, text: "image:pod-reloader@" + someDigest},
	"image.pullPolicy":              {value: `"Always"`, object: deployment, text: "imagePullPolicy:Always"},
	"imagePullSecrets":              {value: `[{"name":"a"}]`, object: deployment, text: "imagePullSecrets:[map[name:a]]"},
	"nameOverride":                  {value: `"other"`, object: deployment, text: "app.kubernetes.io/name:other"},
	"fullnameOverride":              {value: `"other"`, object: "Deployment pod-reloader/other"},
	"commonLabels":                  {value: `{"team":"a"}`, object: webhookObject, text: "team:a"},
	"commonAnnotations":             {value: `{"team":"a"}`, object: webhookObject, text: "team:a"},
	"replicas":                      {value: `5`, object: deployment, text: "replicas:5"},
	"updateStrategy":                {value: `{"type":"Recreate"}`, object: deployment, text: "strategy:map[type:Recreate]"},
	"revisionHistoryLimit":          {value: `7`, object: deployment, text: "revisionHistoryLimit:7"},
	"terminationGracePeriodSeconds": {value: `77`, object: deployment, text: "terminationGracePeriodSeconds:77"},
	"lifecycle":                     {value: `{"preStop":{"sleep":{"seconds":7}}}`, object: deployment, text: "lifecycle:map[preStop:map[sleep:map[seconds:7]]]"},
	"leaderElection.leaseDuration":  {value: `"77s"`, object: deployment, text: "--leader-election-lease-duration=77s"},
	"leaderElection.renewDeadline":  {value: `"7s"`, object: deployment, text: "--leader-election-renew-deadline=7s"},
	"leaderElection.retryPeriod":    {value: `"2s"`, object: deployment, text: "--leader-election-retry-period=2s"},
	"args":                          {value: `["--settle=7s"]`, object: deployment, text: "--settle=7s"},
	"env":                           {value: `[{"name":"A","value":"b"}]`, object: deployment, text: "map[name:A value:b]"},
	"envFrom":                       {value: `[{"secretRef":{"name":"a"}}]`, object: deployment, text: "envFrom:[map[secretRef:map[name:a]]]"},
	"extraVolumes":                  {value: `[{"name":"a","emptyDir":{}}]`, object: deployment, text: "volumes:[map[emptyDir:map[] name:a]]"},
	"extraVolumeMounts":             {value: `[{"name":"a","mountPath":"/a"}]`, object: deployment, text: "volumeMounts:[map[mountPath:/a name:a]]"},
	"extraObjects":                  {value: `[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]`, object: "ConfigMap /a"},
	"log.format":                    {value: `"text"`, object: deployment, text: "--log-format=text"},
	"log.level":                     {value: `"debug"`, object: deployment, text: "--log-level=debug"},
	"annotationPrefix":              {value: `"example.com/"`, object: deployment, text: "--annotation-prefix=example.com/"},
	"namespaces":                    {value: `["a"]`, object: "Role a/pod-reloader-workloads"},
	"namespacesToIgnore":            {value: `["a"]`, object: deployment, text: "--namespaces-to-ignore=a"},
	"namespaceSelector":             {value: `{"matchLabels":{"a":"b"}}`, object: deployment, text: "--namespace-selector=a=b"},
	"objectSelector":                {value: `{"matchLabels":{"a":"b"}}`, object: webhookObject, text: "objectSelector:map[matchLabels:map[a:b]]"},
	"workloadKinds":                 {value: `[{"apiVersion":"a.io/v1","kind":"A","template":"spec.t","resource":"as"}]`, object: webhookObject, text: "resources:[as]"},
	"referents":                     {value: `[{"id":"a","gvr":{"group":"a.io","version":"v1","resource":"as"}}]`, object: "ConfigMap pod-reloader/pod-reloader", text: `"a.io"`},
	"reloader.enabled":              {value: `false`, object: deployment, text: "--stakater-annotations=false"},
	"reloader.autoReloadAll":        {value: `true`, object: deployment, text: "--auto-reload-all"},
	"reloader.annotations":          {value: `{"auto-annotation":"example.org/auto"}`, object: deployment, text: "--auto-annotation=example.org/auto"},
	"reloader.reloadStrategy":       {value: `"env-vars"`, object: deployment, text: "--reload-strategy=env-vars"},
	"reloader.isArgoRollouts":       {value: `true`, object: webhookObject, text: "resources:[rollouts]"},
	"reloader.isOpenshift":          {value: `true`, object: webhookObject, text: "resources:[deploymentconfigs]"},
	"reloader.ignoreJobs":           {value: `true`, object: deployment, text: "--ignored-workload-types=jobs"},
	"reloader.ignoreCronJobs":       {value: `true`, object: deployment, text: "--ignored-workload-types=cronjobs"},
	"reloader.runCronJobs":          {value: `true`, object: "ClusterRole /pod-reloader", text: "resources:[jobs] verbs:[create"},
	"reloader.recreateJobs":         {value: `true`, object: "Role pod-reloader/pod-reloader", text: "resources:[secrets] verbs:[get list delete]"},
	"reloader.enableCSIIntegration": {value: `true`, object: deployment, text: "--enable-csi-integration"},
	"webhook.enabled":               {value: `false`, object: webhookObject},
	"webhook.failurePolicy":         {value: `"Fail"`, object: webhookObject, text: "failurePolicy:Fail"},
	"webhook.timeoutSeconds":        {value: `4`, object: webhookObject, text: "timeoutSeconds:4"},
	"webhook.annotations":           {value: `{"a":"b"}`, object: webhookObject, text: "annotations:map[a:b]"},
	"webhook.reinvocationPolicy":    {value: `"Never"`, object: webhookObject, text: "reinvocationPolicy:Never"},
	"webhook.matchConditions":       {value: `[{"name":"a","expression":"false"}]`, object: webhookObject, text: "map[expression:false name:a]"},
	"webhook.port":                  {value: `10250`, object: deployment, text: "containerPort:10250 name:webhook"},
	"webhook.certificates.mode":     {value: `"cert-manager"`, object: "Certificate pod-reloader/pod-reloader"},
	"webhook.certificates.existingSecret": {
		value: `"a"`, with: givenMode, object: deployment, text: "secretName:a",
	},
	"webhook.certificates.caBundle": {
		value: `"-----BEGIN CERTIFICATE-----"`, with: givenMode, object: webhookObject, text: "caBundle:LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
	},
	"webhook.certificates.issuerRef": {
		value: `{"name":"a"}`, with: certManagerMode, object: "Certificate pod-reloader/pod-reloader", text: "name:a",
	},
	"webhook.clientCA.configMap": {value: `"a"`, object: deployment, text: "configMap:map[name:a]"},
	"webhook.clientCA.names": {
		value: `["a"]`, with: map[string]string{"webhook.clientCA.configMap": `"c"`}, object: deployment, text: "--webhook-client-names=a",
	},
	"digestKey.existingSecret":                       {value: `"a"`, object: deployment, text: "--digest-key-secret=a"},
	"metrics.secure":                                 {value: `true`, object: deployment, text: "--metrics-secure"},
	"metrics.port":                                   {value: `9090`, object: deployment, text: "containerPort:9090 name:metrics"},
	"metrics.serviceMonitor.enabled":                 {value: `true`, object: "ServiceMonitor pod-reloader/pod-reloader"},
	"metrics.serviceMonitor.tlsConfig":               {value: `{"serverName":"a"}`, with: secureServiceMonitor, object: "ServiceMonitor pod-reloader/pod-reloader", text: "serverName:a", gone: "insecureSkipVerify"},
	"metrics.serviceMonitor.authorization":           {value: `{"credentials":{"name":"b","key":"t"}}`, with: secureServiceMonitor, object: "ServiceMonitor pod-reloader/pod-reloader", text: "authorization:map[credentials:map[key:t name:b]]", gone: "bearerTokenFile"},
	"metrics.podMonitor.enabled":                     {value: `true`, object: "PodMonitor pod-reloader/pod-reloader"},
	"metrics.podMonitor.tlsConfig":                   {value: `{"serverName":"a"}`, with: securePodMonitor, object: "PodMonitor pod-reloader/pod-reloader", text: "serverName:a", gone: "insecureSkipVerify"},
	"metrics.podMonitor.authorization":               {value: `{"credentials":{"name":"b","key":"t"}}`, with: securePodMonitor, object: "PodMonitor pod-reloader/pod-reloader", text: "authorization:map[credentials:map[key:t name:b]]"},
	"metrics.prometheusRule.enabled":                 {value: `true`, object: "PrometheusRule pod-reloader/pod-reloader"},
	"metrics.prometheusRule.namespace":               {value: `"a"`, with: enabled("metrics.prometheusRule"), object: "PrometheusRule a/pod-reloader"},
	"metrics.prometheusRule.labels":                  {value: `{"a":"b"}`, with: enabled("metrics.prometheusRule"), object: "PrometheusRule pod-reloader/pod-reloader", text: "labels:map[a:b "},
	"metrics.prometheusRule.annotations":             {value: `{"a":"b"}`, with: enabled("metrics.prometheusRule"), object: "PrometheusRule pod-reloader/pod-reloader", text: "annotations:map[a:b]"},
	"metrics.prometheusRule.without":                 {value: `["PodReloaderIsAbsent"]`, with: enabled("metrics.prometheusRule"), object: "PrometheusRule pod-reloader/pod-reloader", text: "rules:[map[alert:PodReloaderHasNoLeader"},
	"metrics.prometheusRule.additionalRules":         {value: `[{"alert":"A","expr":"up"}]`, with: enabled("metrics.prometheusRule"), object: "PrometheusRule pod-reloader/pod-reloader", text: "map[alert:A expr:up]"},
	"metrics.dashboard.enabled":                      {value: `true`, object: "ConfigMap pod-reloader/pod-reloader-dashboard"},
	"metrics.dashboard.namespace":                    {value: `"a"`, with: enabled("metrics.dashboard"), object: "ConfigMap a/pod-reloader-dashboard"},
	"metrics.dashboard.labels":                       {value: `{"a":"b"}`, with: enabled("metrics.dashboard"), object: "ConfigMap pod-reloader/pod-reloader-dashboard", text: "labels:map[a:b "},
	"metrics.dashboard.annotations":                  {value: `{"a":"b"}`, with: enabled("metrics.dashboard"), object: "ConfigMap pod-reloader/pod-reloader-dashboard", text: "annotations:map[a:b]"},
	"health.port":                                    {value: `9091`, object: deployment, text: "containerPort:9091 name:health"},
	"resources":                                      {value: `{"requests":{"cpu":"7m"}}`, object: deployment, text: "cpu:7m"},
	"podSecurityContext":                             {value: `{"fsGroup":7}`, object: deployment, text: "fsGroup:7"},
	"securityContext":                                {value: `{"runAsUser":7}`, object: deployment, text: "runAsUser:7"},
	"openshift":                                      {value: `"enabled"`, object: deployment, text: "securityContext:map[runAsNonRoot:true seccompProfile:"},
	"serviceAccount.create":                          {value: `false`, with: map[string]string{"serviceAccount.name": `"a"`}, object: "ServiceAccount pod-reloader/a"},
	"serviceAccount.name":                            {value: `"a"`, object: deployment, text: "serviceAccountName:a"},
	"serviceAccount.annotations":                     {value: `{"a":"b"}`, object: "ServiceAccount pod-reloader/pod-reloader", text: "annotations:map[a:b]"},
	"serviceAccount.automount":                       {value: `true`, object: "ServiceAccount pod-reloader/pod-reloader", text: "automountServiceAccountToken:true"},
	"rbac.scope":                                     {value: `"namespaces"`, with: map[string]string{"webhook.enabled": "false", "namespaces": `["a"]`}},
	"rbac.create":                                    {value: `false`, object: "ClusterRole /pod-reloader"},
	"podDisruptionBudget.enabled":                    {value: `false`, object: "PodDisruptionBudget pod-reloader/pod-reloader"},
	"podDisruptionBudget.minAvailable":               {value: `"50%"`, object: "PodDisruptionBudget pod-reloader/pod-reloader", text: "minAvailable:50%"},
	"podDisruptionBudget.maxUnavailable":             {value: `2`, object: "PodDisruptionBudget pod-reloader/pod-reloader", text: "maxUnavailable:2"},
	"podDisruptionBudget.unhealthyPodEvictionPolicy": {value: `"IfHealthyBudget"`, object: "PodDisruptionBudget pod-reloader/pod-reloader", text: "unhealthyPodEvictionPolicy:IfHealthyBudget"},
	"priorityClassName":                              {value: `"a"`, object: deployment, text: "priorityClassName:a"},
	"nodeSelector":                                   {value: `{"a":"b"}`, object: deployment, text: "nodeSelector:map[a:b]"},
	"tolerations":                                    {value: `[{"key":"a"}]`, object: deployment, text: "tolerations:[map[key:a]]"},
	"affinity":                                       {value: `{"podAntiAffinity":{}}`, object: deployment, text: "affinity:map[podAntiAffinity:map[]]"},
	"podAnnotations":                                 {value: `{"a":"b"}`, object: deployment, text: "annotations:map[a:b kubectl"},
	"podLabels":                                      {value: `{"a":"b"}`, object: deployment, text: "labels:map[a:b app"},
	"topologySpreadConstraints":                      {value: `[]`, object: deployment, text: "terminationGracePeriodSeconds:45]"},
	"hostNetwork":                                    {value: `true`, object: deployment, text: "hostNetwork:true"},
	"dnsPolicy":                                      {value: `"Default"`, object: deployment, text: "dnsPolicy:Default"},
	"dnsConfig":                                      {value: `{"nameservers":["192.0.2.1"]}`, object: deployment, text: "dnsConfig:map[nameservers:[192.0.2.1]]"},
	"test.namespace":                                 {value: `"a"`, object: podTest, text: "--namespace=a"},
	"test.labels":                                    {value: `{"a":"b"}`, object: podTest, text: "--labels=a=b"},
	"guard.enabled":                                  {value: `true`, object: "ValidatingAdmissionPolicy /pod-reloader-guard"},
	"guard.validationActions":                        {value: `["Audit"]`, with: enabled("guard"), object: "ValidatingAdmissionPolicyBinding /pod-reloader-guard", text: "validationActions:[Audit]"},
	"networkPolicy.enabled":                          {value: `true`, object: networkPolicy},
	"networkPolicy.webhookFrom":                      {value: `[{"ipBlock":{"cidr":"192.0.2.0/24"}}]`, with: enabled("networkPolicy"), object: networkPolicy, text: "cidr:192.0.2.0/24"},
	"networkPolicy.metricsFrom":                      {value: `[{"podSelector":{}}]`, with: enabled("networkPolicy"), object: networkPolicy, text: "from:[map[podSelector:map[]]]"},
	"networkPolicy.egress":                           {value: `[{"ports":[{"port":53}]}]`, with: enabled("networkPolicy"), object: networkPolicy, text: "egress:[map[ports:[map[port:53]]]]"},
	"flowSchema.enabled":                             {value: `true`, object: "FlowSchema /pod-reloader"},
	"flowSchema.priorityLevel":                       {value: `"a"`, with: enabled("flowSchema"), object: "FlowSchema /pod-reloader", text: "priorityLevelConfiguration:map[name:a]"},
	"flowSchema.matchingPrecedence":                  {value: `77`, with: enabled("flowSchema"), object: "FlowSchema /pod-reloader", text: "matchingPrecedence:77"},
	"secrets.enabled":                                {value: `false`, object: deployment, text: "--secrets=false"},
}

const (
	someDigest    = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	networkPolicy = "NetworkPolicy pod-reloader/pod-reloader"
)

var (
	secureServiceMonitor = map[string]string{"metrics.serviceMonitor.enabled": "true", "metrics.secure": "true"}
	securePodMonitor     = map[string]string{
		"metrics.podMonitor.enabled": "true", "metrics.secure": "true", "metrics.podMonitor.authorization": `{"credentials":{"name":"a","key":"t"}}`,
	}
)

// monitorEffects are those of both kinds of monitors.
func monitorEffects() map[string]effect {
	found := map[string]effect{}
	for value, kind := range map[string]string{"metrics.serviceMonitor": "ServiceMonitor", "metrics.podMonitor": "PodMonitor"} {
		object := kind + " pod-reloader/pod-reloader"
		for name, of := range map[string]effect{
			"namespace":         {value: `"a"`, object: kind + " a/pod-reloader"},
			"labels":            {value: `{"a":"b"}`, object: object, text: "labels:map[a:b "},
			"annotations":       {value: `{"a":"b"}`, object: object, text: "annotations:map[a:b]"},
			"interval":          {value: `"7s"`, object: object, text: "interval:7s"},
			"scrapeTimeout":     {value: `"7s"`, object: object, text: "scrapeTimeout:7s"},
			"relabelings":       {value: `[{"targetLabel":"a"}]`, object: object, text: "elabelings:[map[targetLabel:a]]"},
			"metricRelabelings": {value: `[{"targetLabel":"a"}]`, object: object, text: "metricRelabelings:[map[targetLabel:a]]"},
		} {
			of.with = enabled(value)
			found[value+"."+name] = of
		}
	}
	return found
}

// No value is without an effect on what the chart renders, and the effect is where it belongs.
func TestEachValueOfTheChartHasAnEffect(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	all := monitorEffects()
	maps.Copy(all, effects)
	assert.ElementsMatch(t, leaves(t), slices.Collect(maps.Keys(all)), "the values of the chart, and those that are tested")
	plain := renderJSON(t, helm, nil)
	for path, of := range all {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			without := plain
			if len(of.with) > 0 {
				without = renderJSON(t, helm, of.with)
			}
			set := map[string]string{path: of.value}
			for with, value := range of.with {
				if with != path {
					set[with] = value
				}
			}
			rendered := renderJSON(t, helm, set)
			switch before, after := without[of.object], rendered[of.object]; {
			case of.object == "":
				assert.Equal(t, without, rendered, "it only checks the other values")
			case of.text == "":
				assert.NotEqual(t, before == nil, after == nil, "%s comes or goes", of.object)
			default:
				assert.NotContains(t, fmt.Sprint(before), of.text, "without the value")
				assert.Contains(t, fmt.Sprint(after), of.text)
				if of.gone != "" {
					assert.Contains(t, fmt.Sprint(before), of.gone, "without the value")
					assert.NotContains(t, fmt.Sprint(after), of.gone)
				}
			}
		})
	}
}

// leaves are the values that the README describes, each in a row.
func leaves(t *testing.T) []string {
	t.Helper()
	var rows []string
	v := readValues(t)
	var root schema
	require.NoError(t, yaml.Unmarshal([]byte(read(t, schemaFile)), &root))
	v.describe(t, root, nil, v.defaults, &rows)
	var found []string
	for _, row := range rows {
		var path string
		_, err := fmt.Sscanf(row, "| `%s", &path)
		require.NoError(t, err)
		found = append(found, path[:len(path)-1])
	}
	return found
}

// renderJSON renders the chart, with its tests, with values in JSON.
func renderJSON(t *testing.T, helm string, values map[string]string) objects {
	t.Helper()
	args := slices.DeleteFunc(templateArgs(t, nil), func(arg string) bool { return arg == "--skip-tests" })
	for path, value := range values {
		args = append(args, "--set-json", path+"="+value)
	}
	out, err := run(t.Context(), helm, args...)
	require.NoError(t, err)
	return parse(t, out)
}

// TestChartSnapshots compares what the value files render with testdata/chart, so that a review shows what a change of the chart
// does to an installation. `go test ./e2e/suite/repository -run TestChartSnapshots -update` writes the files.
func TestChartSnapshots(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	for name := range valueFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t.Context(), helm, append(templateArgs(t, nil), "--values", filepath.Join(toolchain.RootOf(t), valuesDirectory, name))...)
			require.NoError(t, err)
			file := filepath.Join("testdata", "chart", name)
			if *update {
				require.NoError(t, os.WriteFile(file, out, 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(out), "run the test with -update, and look at the difference")
		})
	}
}
