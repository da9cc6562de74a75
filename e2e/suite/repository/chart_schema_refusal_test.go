package repository

import "testing"

func TestChartSchemaRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	requireRefusals(t, map[string]refusal{
		"FailurePolicy": {
			reason: "the API server would reject it later, with another message",
			values: []string{"webhook.failurePolicy=ignore"},
			want:   "at '/webhook/failurePolicy': value must be one of 'Ignore', 'Fail'",
		},
		"KindWithoutResource": {
			reason: "permissions and rules need the plural, which cannot be derived from the kind",
			values: []string{"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].template=spec.t"},
			want:   "at '/workloadKinds/0': missing property 'resource'",
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
		"IssuerWithoutName": {
			reason: "cert-manager would report it late",
			values: []string{"webhook.certificates.issuerRef.kind=ClusterIssuer"},
			want:   "at '/webhook/certificates/issuerRef'",
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
		"SurgeAsText": {
			reason: "it is a text to Helm: the API server takes only a percentage as text, and the installation would fail halfway",
			values: []string{"updateStrategy.rollingUpdate.maxSurge=01"},
			want:   "at '/updateStrategy/rollingUpdate/maxSurge': '01' does not match pattern",
		},
		"MoreThanAllUnavailable": {
			reason: "the API server would reject the Deployment",
			values: []string{"updateStrategy.rollingUpdate.maxUnavailable=150%"},
			want:   "at '/updateStrategy/rollingUpdate/maxUnavailable': '150%' does not match pattern",
		},
		"MoreThanAllEvicted": {
			reason: "the API server would reject the PodDisruptionBudget",
			values: []string{"podDisruptionBudget.maxUnavailable=150%"},
			want:   "at '/podDisruptionBudget/maxUnavailable': '150%' does not match pattern",
		},
		"MoreThanAllAvailable": {
			reason: "the same for the other way to write it",
			values: []string{"podDisruptionBudget.minAvailable=101%"},
			want:   "at '/podDisruptionBudget/minAvailable': '101%' does not match pattern",
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
		"UnknownScope": {
			reason: "permissions would be wider than intended",
			values: []string{"rbac.scope=namespace"},
			want:   "at '/rbac/scope': value must be one of 'cluster', 'namespaces'",
		},
		"LeaseInMinutes": {
			reason: "the chart compares seconds",
			values: []string{"leaderElection.leaseDuration=1m"},
			want:   "at '/leaderElection/leaseDuration': '1m' does not match pattern",
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
		"MisspeltPeer": {
			reason: "the policy would be open to every namespace, and Helm only warns",
			values: []string{"networkPolicy.metricsFrom[0].namespaceSelector.matchLables.a=b"},
			want:   "at '/networkPolicy/metricsFrom/0/namespaceSelector': additional properties 'matchLables' not allowed",
		},
		"MisspeltEgress": {
			reason: "every connection would be allowed, and Helm only warns",
			values: []string{"networkPolicy.egress[0].too[0].ipBlock.cidr=10.0.0.0/8"},
			want:   "at '/networkPolicy/egress/0': additional properties 'too' not allowed",
		},
		"MisspeltSecurityContext": {
			reason: "the container would have more permissions than intended, and Helm only warns",
			values: []string{"securityContext.runAsNonroot=true"},
			want:   "at '/securityContext': additional properties 'runAsNonroot' not allowed",
		},
		"MisspeltVolumeSource": {
			reason: "the pods would mount an empty volume",
			values: []string{"extraVolumes[0].name=a", "extraVolumes[0].projected.sorces[0].secret.name=b"},
			want:   "at '/extraVolumes/0/projected': additional properties 'sorces' not allowed",
		},
		"Quantity": {
			reason: "the API server would reject the Deployment, and the installation would fail halfway",
			values: []string{"resources.limits.memory=512 MB"},
			want:   "at '/resources/limits/memory': '512 MB' does not match pattern",
		},
		"MisspeltReferent": {
			reason: "the program would report the configuration as invalid later",
			values: []string{"referents[0].id=b", "referents[0].gvr.group=b.io", "referents[0].gvr.version=v1", "referents[0].gvr.resource=bs", "referents[0].refs[0].too=secrets"},
			want:   "at '/referents/0/refs/0': additional properties 'too' not allowed",
		},
		"SelectorWithoutValues": {
			reason: "the API server would reject the webhook configuration, and the installation would fail halfway",
			values: []string{"namespaceSelector.matchExpressions[0].key=a", "namespaceSelector.matchExpressions[0].operator=In"},
			want:   "at '/namespaceSelector/matchExpressions/0': missing property 'values'",
		},
		"SelectorWithValues": {
			reason: "the same for an operator that takes none",
			values: []string{"objectSelector.matchExpressions[0].key=a", "objectSelector.matchExpressions[0].operator=Exists", "objectSelector.matchExpressions[0].values={b}"},
			want:   "at '/objectSelector/matchExpressions/0/values': maxItems: got 1, want 0",
		},
		"LabelThatCannotExist": {
			reason: "the API server would reject each object",
			values: []string{"commonLabels.team=a b"},
			want:   "at '/commonLabels/team': 'a b' does not match pattern",
		},
		"LabelWithSpace": {
			reason: "the API server would reject each object",
			values: []string{"commonLabels.my team=a"},
			want:   "at '/commonLabels': additional properties 'my team' not allowed",
		},
		"TemplateOutsideTheSpec": {
			reason: "the program would report the configuration as invalid later",
			values: []string{"workloadKinds[0].apiVersion=a.io/v1", "workloadKinds[0].kind=A", "workloadKinds[0].resource=as", "workloadKinds[0].template=status.template"},
			want:   "at '/workloadKinds/0/template': 'status.template' does not match pattern",
		},
		"PrefixThatCannotExist": {
			reason: "the program would not start",
			values: []string{"annotationPrefix=example..com"},
			want:   "at '/annotationPrefix': 'example..com' does not match pattern",
		},
		"UnknownAnnotationOfReloader": {
			reason: "the program would not start",
			values: []string{"reloader.annotations.automatic-annotation=example.org/auto"},
			want:   "at '/reloader/annotations': additional properties 'automatic-annotation' not allowed",
		},
		"RegistryWithScheme": {
			reason: "the pods would have InvalidImageName",
			values: []string{"image.registry=https://registry.example.com"},
			want:   "at '/image/registry': 'https://registry.example.com' does not match pattern",
		},
		"RepositoryInCapitals": {
			reason: "the pods would have InvalidImageName",
			values: []string{"image.repository=Mirror/Pod-Reloader"},
			want:   "at '/image/repository': 'Mirror/Pod-Reloader' does not match pattern",
		},
		"TestNamespaceThatCannotExist": {
			reason: "helm test would fail without a hint at the value",
			values: []string{"test.namespace=My App"},
			want:   "at '/test/namespace': 'My App' does not match pattern",
		},
		"NameThatIsNoService": {
			reason: "the API server would reject both Services, and the installation would fail halfway",
			values: []string{"fullnameOverride=2nd"},
			want:   "at '/fullnameOverride': '2nd' does not match pattern",
		},
		"GuardWithoutActions": {
			reason: "the API server would reject the binding, and the installation would fail halfway",
			values: []string{"guard.enabled=true", "guard.validationActions=null"},
			want:   "at '/guard': missing property 'validationActions'",
		},
		"LogLevelBelowOne": {
			reason: "the program would log at info",
			values: []string{"log.level=-1"},
			want:   "at '/log/level': minimum: got -1, want 1",
		},
		"LogLevelAsTextBelowOne": {
			reason: "the same for a text",
			values: []string{"log.level=01"},
			want:   "at '/log/level': '01' does not match pattern",
		},
		"LogLevelBeyondTheLast": {
			reason: "the same",
			values: []string{"log.level=128"},
			want:   "at '/log/level': maximum: got 128, want 127",
		},
	})
}
