package edge_test

import (
	"encoding/json"
	"strconv"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// attempt is a write, of which a dry run is made.
type attempt struct {
	write func(client.Client) error
	// refused is a part of the guard's message; empty if the guard lets it pass.
	refused string
}

// targets creates what the attempts are about.
func targets(s *fixture.Fixture) {
	s.Helper()
	annotated := fixture.Uses{Annotations: map[string]string{"example.org/owner": "team"}}
	system := s.Manifest("Deployment", "system", annotated)
	system.SetNamespace("kube-system")
	require.NoError(s, s.Create(s.Context(), system))
	for _, kind := range fixture.Kinds {
		require.NoError(s, s.Create(s.Context(), s.Manifest(kind, "target", annotated)))
	}
	paused := s.Manifest("Deployment", "paused", annotated)
	require.NoError(s, unstructured.SetNestedField(paused.Object, true, "spec", "paused"))
	argo, config := s.Manifest("Deployment", "target", annotated), s.Manifest("Deployment", "target", annotated)
	argo.SetGroupVersionKind(fixture.WorkloadKind("Rollout"))
	config.SetGroupVersionKind(fixture.WorkloadKind("DeploymentConfig"))
	for _, object := range []client.Object{
		paused, argo, config, manyAnnotations(s), s.Manifest("Job", "target", fixture.Uses{}),
		secret("pod-reloader", "others", corev1.SecretTypeOpaque), secret(s.Namespace, "others", corev1.SecretTypeOpaque),
		secret("pod-reloader", certificates, corev1.SecretTypeOpaque), secret(s.Namespace, certificates, corev1.SecretTypeOpaque),
		foreignWebhooks("others"),
	} {
		require.NoError(s, s.Create(s.Context(), object))
	}
}

// manyAnnotations is a workload with 4,000 annotations. An expression has a limited number of steps.
func manyAnnotations(s *fixture.Fixture) client.Object {
	annotations := map[string]string{}
	for n := range 4000 {
		annotations["example.org/annotation-"+strconv.Itoa(n)] = "value"
	}
	return s.Manifest("Deployment", "many", fixture.Uses{Annotations: annotations})
}

func secret(namespace, name string, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"kubernetes.io/service-account.name": "default"}},
		Type:       kind,
	}
}

// attempts are what the guard refuses, and some of what it lets pass.
func attempts(s *fixture.Fixture) map[string]attempt {
	s.Helper()
	all := map[string]attempt{}
	for _, some := range []map[string]attempt{attemptsOnTemplates(s), attemptsOnWorkloads(s), attemptsOnJobsAndSecrets(s), attemptsOnCertificates(s)} {
		for name, one := range some {
			all[name] = one
		}
	}
	return all
}

const (
	createsNothing = "pod-reloader creates and deletes no pods, no workloads and no webhook configurations"
	ownOnly        = "pod-reloader changes its own annotations only, not "
	noContainers   = "pod-reloader changes nothing of containers"
	ownPauses      = "pod-reloader ends no pause of a Deployment but its own"
	ownBundle      = "pod-reloader changes nothing of webhook configurations but the caBundle of its own"
	ownSecrets     = "pod-reloader creates Opaque Secrets in its own namespace"
	pausedAt       = "deployment.reloader.stakater.com/paused-at"
)

// attemptsOnTemplates change what runs.
func attemptsOnTemplates(s *fixture.Fixture) map[string]attempt {
	of := func(kind, patch, refused string) attempt { return attempt{patching(s, kind, "target", patch), refused} }
	main := func(fields string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"main",` + fields + `}]}}}}`
	}
	const containers = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/evil:1"}]}}}}`
	return map[string]attempt{
		"Image":             of("Deployment", main(`"image":"example.com/evil:1"`), noContainers),
		"ImageOfADaemonSet": of("DaemonSet", main(`"image":"example.com/evil:1"`), noContainers),
		"Command":           of("StatefulSet", main(`"command":["sh"]`), noContainers),
		"ImageOfACronJob": of("CronJob",
			`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/evil:1"}]}}}}}}`, noContainers),
		"Container": of("Deployment",
			`{"spec":{"template":{"spec":{"containers":[{"name":"second","image":"example.com/evil:1"}]}}}}`, noContainers),
		"InitContainer": of("Deployment",
			`{"spec":{"template":{"spec":{"initContainers":[{"name":"init","image":"example.com/evil:1"}]}}}}`, ownOnly+"the pod spec"),
		"Account":                  of("Deployment", `{"spec":{"template":{"spec":{"serviceAccountName":"default"}}}}`, ownOnly+"the pod spec"),
		"Variable":                 of("Deployment", main(`"env":[{"name":"LD_PRELOAD","value":"x"}]`), noContainers),
		"VariableFromSecret":       of("Deployment", main(`"env":[{"name":"STAKATER_X_SECRET","valueFrom":{"secretKeyRef":{"name":"a","key":"b"}}}]`), noContainers),
		"OwnVariable":              of("Deployment", main(`"env":[{"name":"STAKATER_X_SECRET","value":"1"}]`), ""),
		"AnnotationOfPods":         of("Deployment", `{"spec":{"template":{"metadata":{"annotations":{"example.org/inject":"x"}}}}}`, ownOnly+"annotations of others on the pod template"),
		"OwnAnnotationOfPods":      of("Deployment", `{"spec":{"template":{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-restart":"9"}}}}}`, ""),
		"LabelOfPods":              of("StatefulSet", `{"spec":{"template":{"metadata":{"labels":{"more":"x"}}}}}`, ownOnly+"metadata of the pod template"),
		"ImageOfARollout":          of("Rollout", containers, noContainers),
		"ImageOfADeploymentConfig": of("DeploymentConfig", containers, noContainers),
	}
}

// attemptsOnWorkloads change the rest of workloads.
func attemptsOnWorkloads(s *fixture.Fixture) map[string]attempt {
	of := func(kind, patch, refused string) attempt { return attempt{patching(s, kind, "target", patch), refused} }
	paused := func(patch, refused string) attempt {
		return attempt{patching(s, "Deployment", "paused", patch), refused}
	}
	system := s.Manifest("Deployment", "system", fixture.Uses{})
	system.SetNamespace("kube-system")
	scale := func(c client.Client) error {
		object := s.Manifest("Deployment", "target", fixture.Uses{})
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
		return c.SubResource("scale").Patch(s.Context(), object, patch, client.DryRunAll)
	}
	annotations := func(text string) string { return `{"metadata":{"annotations":{` + text + `}}}` }
	return map[string]attempt{
		"Replicas":                    of("Deployment", `{"spec":{"replicas":5}}`, ownOnly+"spec"),
		"Scale":                       {scale, "pod-reloader scales nothing"},
		"Strategy":                    of("Deployment", `{"spec":{"minReadySeconds":5}}`, ownOnly+"spec"),
		"Schedule":                    of("CronJob", `{"spec":{"schedule":"* * * * *"}}`, ownOnly+"spec"),
		"Parallelism":                 of("CronJob", `{"spec":{"jobTemplate":{"spec":{"parallelism":9}}}}`, ownOnly+"spec.jobTemplate.spec"),
		"ForeignAnnotation":           of("Deployment", annotations(`"example.org/owner":null`), ownOnly+"annotations of others"),
		"TrackedConfigMaps":           of("DaemonSet", annotations(`"pod-reloader.cs.sap.com/configmaps":"x"`), ownOnly+"annotations of others"),
		"OwnAnnotations":              of("CronJob", annotations(`"pod-reloader.cs.sap.com/config-record":"x","pod-reloader.cs.sap.com/last-reload":"x"`), ""),
		"MarkOfADeploymentConfig":     of("DeploymentConfig", annotations(`"pod-reloader.cs.sap.com/config-record":"x"`), ""),
		"CanceledRecreation":          of("Job", annotations(`"pod-reloader.cs.sap.com/recreation-canceled":"x"`), ""),
		"ManyAnnotations":             {patching(s, "Deployment", "many", annotations(`"pod-reloader.cs.sap.com/config-record":"x"`)), ""},
		"Label":                       of("StatefulSet", `{"metadata":{"labels":{"pod-reloader.cs.sap.com/ignored":"true"}}}`, ownOnly+"metadata"),
		"Finalizer":                   of("Deployment", `{"metadata":{"finalizers":["example.org/hold"]}}`, ownOnly+"metadata"),
		"Pause":                       of("Deployment", `{"spec":{"paused":true}}`, ownPauses),
		"OwnPause":                    of("Deployment", `{"metadata":{"annotations":{"`+pausedAt+`":"x"}},"spec":{"paused":true}}`, ""),
		"EndOfAPause":                 paused(`{"spec":{"paused":null}}`, ownPauses),
		"ClaimOfAPause":               paused(annotations(`"`+pausedAt+`":"x"`), ownPauses),
		"PauseOfARollout":             of("Rollout", `{"spec":{"paused":true}}`, ownOnly+"spec"),
		"RestartOfARollout":           of("Rollout", `{"spec":{"restartAt":"2030-01-01T00:00:00Z"}}`, ""),
		"StatusOfARollout":            of("Rollout", `{"status":{"phase":"Healthy"}}`, ownOnly+"the object"),
		"KubeSystem":                  {merging(s, system, annotations(`"pod-reloader.cs.sap.com/config-record":"x"`)), "pod-reloader writes no workloads in kube-system"},
		"NewDeployment":               {creating(s, s.Manifest("Deployment", "new", fixture.Uses{})), createsNothing},
		"NewRollout":                  {creating(s, foreign(s, "Rollout", "new")), createsNothing},
		"NewDeploymentConfig":         {creating(s, foreign(s, "DeploymentConfig", "new")), createsNothing},
		"ReplicasOfADeploymentConfig": of("DeploymentConfig", `{"spec":{"replicas":5}}`, ownOnly+"spec"),
		"DeletedDeployment":           {deleting(s, s.Manifest("Deployment", "target", fixture.Uses{})), createsNothing},
		"Pod":                         {creating(s, pod(s)), createsNothing},
	}
}

// attemptsOnJobsAndSecrets create and delete.
func attemptsOnJobsAndSecrets(s *fixture.Fixture) map[string]attempt {
	again := s.Manifest("Job", "again", fixture.Uses{Annotations: map[string]string{"pod-reloader.cs.sap.com/recreated-from": "uid"}})
	fresh := s.Manifest("Job", "new", fixture.Uses{})
	change := merging(s, secret("pod-reloader", "others", ""), `{"data":{"a":"Yg=="}}`)
	return map[string]attempt{
		"NewJob":                   {creating(s, fresh), "pod-reloader creates Jobs only for a CronJob"},
		"JobAgain":                 {creating(s, again), ""},
		"DeletedJob":               {deleting(s, s.Manifest("Job", "target", fixture.Uses{})), "pod-reloader deletes only Jobs of a CronJob"},
		"NewSecret":                {creating(s, secret("pod-reloader", "new", corev1.SecretTypeOpaque)), ""},
		"Token":                    {creating(s, secret("pod-reloader", "new", corev1.SecretTypeServiceAccountToken)), ownSecrets},
		"SecretInAnotherNamespace": {creating(s, secret(s.Namespace, "new", corev1.SecretTypeOpaque)), ownSecrets},
		"ChangedSecret":            {change, ownSecrets},
		"DeletedSecret":            {deleting(s, secret("pod-reloader", "others", "")), ownSecrets},
	}
}

// attemptsOnCertificates are about what self-managed certificates need, and the rest of those objects.
func attemptsOnCertificates(s *fixture.Fixture) map[string]attempt {
	own := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pod-reloader"}}
	of := func(patch, refused string) attempt { return attempt{operating(s, own, patch), refused} }
	data := `[{"op":"add","path":"/data","value":{"tls.crt":"Yg=="}}]`
	bundle := `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"Y2E="}]`
	return map[string]attempt{
		"Certificates":                   {operating(s, secret("pod-reloader", certificates, ""), data), ""},
		"CertificatesInAnotherNamespace": {operating(s, secret(s.Namespace, certificates, ""), data), ownSecrets},
		"CABundle":                       of(bundle, ""),
		"CABundleOfAnother":              {operating(s, foreignWebhooks("others"), bundle), ownBundle},
		"WebhookRules":                   of(`[{"op":"replace","path":"/webhooks/0/rules","value":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]}]`, ownBundle),
		"WebhookAddress":                 of(`[{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://example.com/"}}]`, ownBundle),
		"WebhookConditions":              of(`[{"op":"remove","path":"/webhooks/0/matchConditions"}]`, ownBundle),
		"WebhookFailurePolicy":           of(`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]`, ownBundle),
		"WebhookAnnotation":              of(`[{"op":"add","path":"/metadata/annotations","value":{"cert-manager.io/inject-ca-from":"a/b"}}]`, ownBundle),
		"WebhookRemoved":                 of(`[{"op":"replace","path":"/webhooks","value":[]}]`, ownBundle),
		"WebhookAdded":                   of(`[{"op":"add","path":"/webhooks/-","value":`+oneWebhook+`}]`, ownBundle),
		"NewWebhookConfiguration":        {creating(s, foreignWebhooks("new")), createsNothing},
		"DeletedWebhookConfiguration":    {deleting(s, own), createsNothing},
		"WebhookOwner":                   of(`[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Namespace","name":"a","uid":"b"}]}]`, ownBundle),
	}
}

// certificates is the Secret of self-managed certificates.
const certificates = "pod-reloader-certificates"

// oneWebhook is a webhook that no API server calls.
const oneWebhook = `{"name":"a.example.com","clientConfig":{"url":"https://example.com/"},"sideEffects":"None","admissionReviewVersions":["v1"]}`

func foreignWebhooks(name string) *unstructured.Unstructured {
	var webhook map[string]any
	if err := json.Unmarshal([]byte(oneWebhook), &webhook); err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
		"metadata": map[string]any{"name": name}, "webhooks": []any{webhook},
	}}
}

func pod(s *fixture.Fixture) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/evil:1"}}},
	}
}

// foreign is a workload of another program.
func foreign(s *fixture.Fixture, kind, name string) *unstructured.Unstructured {
	object := s.Manifest("Deployment", name, fixture.Uses{})
	object.SetGroupVersionKind(fixture.WorkloadKind(kind))
	return object
}

// patching patches a workload; lists of built-in kinds by the names in them.
func patching(s *fixture.Fixture, kind, name, patch string) func(client.Client) error {
	if fixture.WorkloadKind(kind).Group != observe.KindNamed(kind).GroupVersionKind().Group {
		return merging(s, foreign(s, kind, name), patch)
	}
	object := s.Manifest(kind, name, fixture.Uses{})
	return func(c client.Client) error {
		return c.Patch(s.Context(), object.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.DryRunAll)
	}
}

func merging(s *fixture.Fixture, object client.Object, patch string) func(client.Client) error {
	return func(c client.Client) error {
		return c.Patch(s.Context(), copied(object), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}

// operating patches by operations.
func operating(s *fixture.Fixture, object client.Object, operations string) func(client.Client) error {
	return func(c client.Client) error {
		return c.Patch(s.Context(), copied(object), client.RawPatch(types.JSONPatchType, []byte(operations)), client.DryRunAll)
	}
}

func creating(s *fixture.Fixture, object client.Object) func(client.Client) error {
	return func(c client.Client) error { return c.Create(s.Context(), copied(object), client.DryRunAll) }
}

func deleting(s *fixture.Fixture, object client.Object) func(client.Client) error {
	return func(c client.Client) error { return c.Delete(s.Context(), copied(object), client.DryRunAll) }
}

// copied is a copy, since a client writes the answer into what it is given.
func copied(object client.Object) client.Object {
	same, _ := object.DeepCopyObject().(client.Object)
	return same
}
