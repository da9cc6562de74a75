package repository

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

const publishedSum = "pod-reloader.cs.sap.com/referent-checksum"

// publishingGuard are values with a guard and with custom resources whose checksums are published: one in namespaces, one without
// namespace, one that is also a kind of workloads, and one with the name of a built-in resource. Other kinds of workloads have the name of
// a resource of another group.
var publishingGuard = []string{
	"guard.enabled=true",
	"workloadKinds[0].apiVersion=guarded.example.com/v1", "workloadKinds[0].kind=Fleet", "workloadKinds[0].resource=fleets", "workloadKinds[0].template=spec.template",
	"workloadKinds[1].apiVersion=other.example.com/v1", "workloadKinds[1].kind=Squadron", "workloadKinds[1].resource=fleets", "workloadKinds[1].template=spec.pods",
	"workloadKinds[2].apiVersion=other.example.com/v1", "workloadKinds[2].kind=Tab", "workloadKinds[2].resource=cronjobs", "workloadKinds[2].template=spec.template",
	"workloadKinds[3].apiVersion=other.example.com/v1", "workloadKinds[3].kind=Batch", "workloadKinds[3].resource=jobs", "workloadKinds[3].template=spec.template",
	"workloadKinds[4].apiVersion=other.example.com/v1", "workloadKinds[4].kind=Safe", "workloadKinds[4].resource=secrets", "workloadKinds[4].template=spec.template",
	"workloadKinds[5].apiVersion=other.example.com/v1", "workloadKinds[5].kind=App", "workloadKinds[5].resource=deployments", "workloadKinds[5].template=spec.template",
	"referents[0].id=parts", "referents[0].gvr.group=guarded.example.com", "referents[0].gvr.version=v1", "referents[0].gvr.resource=parts", "referents[0].publish=true",
	"referents[1].id=realms", "referents[1].gvr.group=guarded.example.com", "referents[1].gvr.version=v1", "referents[1].gvr.resource=realms", "referents[1].publish=true",
	"referents[1].scope=Cluster", "referents[1].annotation=example.org/sum",
	"referents[2].id=fleets", "referents[2].gvr.group=guarded.example.com", "referents[2].gvr.version=v1", "referents[2].gvr.resource=fleets", "referents[2].publish=true",
	"referents[3].id=vaults", "referents[3].gvr.group=guarded.example.com", "referents[3].gvr.version=v1", "referents[3].gvr.resource=secrets", "referents[3].publish=true",
	"referents[4].id=plains", "referents[4].gvr.group=guarded.example.com", "referents[4].gvr.version=v1", "referents[4].gvr.resource=plains",
}

// The guard applies to the resources that the account may patch, and to no others. A kind of workloads keeps its rule.
func TestGuardAppliesToPublishedCustomResources(t *testing.T) {
	t.Parallel()
	helm := tool(t, "helm", "helm")
	const policy = "ValidatingAdmissionPolicy /pod-reloader-guard"
	rules := fmt.Sprint(field(t, template(t, helm, publishingGuard...)[policy], "spec", "matchConstraints", "resourceRules"))
	for _, resource := range []string{"parts", "realms", "secrets"} {
		assert.Contains(t, rules, "map[apiGroups:[guarded.example.com] apiVersions:[*] operations:[UPDATE] resources:["+resource+"] scope:*]")
	}
	assert.Contains(t, rules, "map[apiGroups:[guarded.example.com] apiVersions:[*] operations:[CREATE UPDATE DELETE] resources:[fleets fleets/scale] scope:Namespaced]")
	assert.NotContains(t, rules, "resources:[fleets]")
	assert.NotContains(t, rules, "plains")

	text := fmt.Sprint(template(t, helm, append(publishingGuard, "annotationPrefix=example.com")...)[policy])
	assert.Contains(t, text, `"guarded.example.com/parts":["example.com/referent-checksum"]`)
	assert.Contains(t, text, `"guarded.example.com/realms":["example.org/sum"]`)
}

// The label of the Secrets with Jobs to create again is the same under each prefix.
func TestGuardAllowsDeletingManifestsUnderEachPrefix(t *testing.T) {
	t.Parallel()
	label, _ := jobrun.Store{}.Label()
	rendered := template(t, tool(t, "helm", "helm"), "guard.enabled=true", "annotationPrefix=example.com")
	assert.Contains(t, fmt.Sprint(rendered["ValidatingAdmissionPolicy /pod-reloader-guard"]), fmt.Sprintf("%q in variables.before.metadata", label))
}

// The guard allows the variables that a reload writes. Its message, and the pages, name the same ones.
func TestGuardNamesTheVariablesThatItAllows(t *testing.T) {
	t.Parallel()
	const policy = "ValidatingAdmissionPolicy /pod-reloader-guard"
	variable := regexp.MustCompile(`STAKATER_\[A-Z0-9_\]\*_\(([A-Z|]+)\)`)
	written := regexp.MustCompile(`STAKATER_<NAME>_[A-Z]+`)
	var want []string
	for _, kind := range []reference.Kind{reference.ConfigMap, reference.Secret, reference.SecretProviderClass} {
		want = append(want, strings.Replace(strategy.VariableName(reference.Ref{Kind: kind, Name: "x"}), "_X_", "_<NAME>_", 1))
	}
	for source, rendered := range map[string]objects{
		"manifests": kustomize(t, tool(t, kubernetesTool(), "kubectl"), "guard"),
		"chart":     template(t, tool(t, "helm", "helm"), "guard.enabled=true"),
	} {
		var allowed [][]string
		for _, rule := range list(field(t, rendered[policy], "spec", "validations")) {
			rule, _ := rule.(map[string]any)
			for _, suffixes := range variable.FindAllStringSubmatch(fmt.Sprint(rule["expression"]), -1) {
				var names []string
				for suffix := range strings.SplitSeq(suffixes[1], "|") {
					names = append(names, "STAKATER_<NAME>_"+suffix)
				}
				allowed = append(allowed, names)
				assert.ElementsMatch(t, names, written.FindAllString(fmt.Sprint(rule["message"]), -1), "the message in %s", source)
			}
		}
		assert.Equal(t, [][]string{want, want}, allowed, "the expression in %s: variables before and after the write", source)
	}
	for _, page := range []string{"docs/annotations.md", "docs/security.md"} {
		assert.Subset(t, written.FindAllString(read(t, page), -1), want, page)
	}
}

// guardedKinds are the resources of the kinds of publishingGuard.
var guardedKinds = map[string]metav1.GroupResource{
	"Part": {Group: "guarded.example.com", Resource: "parts"}, "Realm": {Group: "guarded.example.com", Resource: "realms"},
	"Fleet": {Group: "guarded.example.com", Resource: "fleets"}, "Squadron": {Group: "other.example.com", Resource: "fleets"},
	"Vault": {Group: "guarded.example.com", Resource: "secrets"}, "Safe": {Group: "other.example.com", Resource: "secrets"},
	"Tab": {Group: "other.example.com", Resource: "cronjobs"}, "Batch": {Group: "other.example.com", Resource: "jobs"},
	"App": {Group: "other.example.com", Resource: "deployments"},
}

// guarded is an object of one of the kinds of publishingGuard. A Realm has no namespace.
func guarded(kind, namespace string) *unstructured.Unstructured {
	template := "template"
	if kind == "Squadron" {
		template = "pods"
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": guardedKinds[kind].Group + "/v1", "kind": kind,
		"spec": map[string]any{
			"size": int64(1),
			template: map[string]any{
				"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.com/app:1"}}},
			},
		},
		"status": map[string]any{"phase": "Ready"},
	}}
	if kind != "Realm" {
		object.SetNamespace(namespace)
	}
	object.SetName("target")
	object.SetAnnotations(map[string]string{"example.org/owner": "team"})
	return object
}

// guardRestrictsPublishing tries, with the account and every permission on custom resources, what pod-reloader never does to those in
// which it publishes checksums. The same writes by an administrator are valid.
func guardRestrictsPublishing(t *testing.T, cluster *controlplane.ControlPlane) {
	t.Helper()
	installPublishingGuard(t, cluster)
	config, id := cluster.Admin(), controlplane.ServiceAccount("pod-reloader", "pod-reloader")
	config.Impersonate = rest.ImpersonationConfig{UserName: id.User, Groups: id.Groups}
	as, err := client.New(config, client.Options{})
	require.NoError(t, err)
	// A permission that is missing is an error 403 as well: the probe is allowed with the permission, and refused by the guard.
	require.Eventually(t, func() bool {
		return as.Patch(t.Context(), guarded("Part", "default"), annotating(publishedSum), client.DryRunAll) == nil &&
			apierrors.IsForbidden(as.Patch(t.Context(), guarded("Part", "default"), annotating("example.org/owner"), client.DryRunAll))
	}, 2*time.Minute, 50*time.Millisecond, "the guard is not in effect")

	for name, write := range publishingWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := guarded(write.kind, cmp.Or(write.namespace, "default"))
			require.NoError(t, cluster.Client().Patch(t.Context(), object.DeepCopy(), write.patch, client.DryRunAll), "the write is valid for an administrator")
			err := as.Patch(t.Context(), object, write.patch, client.DryRunAll)
			if write.refused == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, "ValidatingAdmissionPolicy 'pod-reloader-guard'")
			assert.ErrorContains(t, err, write.refused)
		})
	}
	t.Run("Null", func(t *testing.T) {
		t.Parallel()
		for n, spec := range nullSpecs {
			object := guarded("Fleet", "default")
			object.SetName(fmt.Sprintf("null-%d", n))
			require.NoError(t, unstructured.SetNestedField(object.Object, spec, "spec"))
			require.NoError(t, cluster.Client().Create(t.Context(), object.DeepCopy()))
			require.NoError(t, as.Patch(t.Context(), object.DeepCopy(), inTemplate("template", hashed), client.DryRunAll), "%v", spec)
			err := as.Patch(t.Context(), object, merging(`{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`), client.DryRunAll)
			require.ErrorContains(t, err, ownAnnotations+"metadata of the pod template", "%v", spec)
		}
	})
	t.Run("NewJobOfAnotherGroup", func(t *testing.T) {
		t.Parallel()
		object := guarded("Batch", "default")
		object.SetName("new")
		object.SetAnnotations(map[string]string{"pod-reloader.cs.sap.com/recreated-from": "uid"})
		require.NoError(t, cluster.Client().Create(t.Context(), object.DeepCopy(), client.DryRunAll), "the write is valid for an administrator")
		require.ErrorContains(t, as.Create(t.Context(), object, client.DryRunAll), "pod-reloader creates and deletes no pods, no workloads")
	})
	t.Run("ServerSideApply", func(t *testing.T) {
		t.Parallel()
		object := guarded("Part", "default")
		require.NoError(t, cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object))
		require.NoError(t, publish(t, as, object, map[string]string{publishedSum: "1"}), "as the program writes it")
		assert.Contains(t, object.GetAnnotations(), publishedSum)
		require.NoError(t, publish(t, as, object, nil), "as the program removes it")
		assert.NotContains(t, object.GetAnnotations(), publishedSum)
	})
}

// nullSpecs have a field that is null at each depth.
var nullSpecs = []any{
	nil,
	map[string]any{"template": nil},
	map[string]any{"template": map[string]any{"metadata": nil, "spec": nil}},
	map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": nil}, "spec": map[string]any{"containers": nil}}},
	map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "env": nil}}}}},
}

// installPublishingGuard creates the kinds of publishingGuard with an object of each, the guard, and more permissions than the chart
// grants.
func installPublishingGuard(t *testing.T, cluster *controlplane.ControlPlane) {
	t.Helper()
	api := cluster.Client()
	for kind, resource := range guardedKinds {
		definition := controlplane.CustomResource{
			Group: resource.Group, Kind: kind, Plural: resource.Resource, ClusterScoped: kind == "Realm", WithoutStatus: true,
		}
		require.NoError(t, cluster.Apply(t.Context(), definition.Definition()))
		require.NoError(t, cluster.AwaitServed(t.Context(), resource.String()))
		require.NoError(t, api.Create(t.Context(), guarded(kind, "default")))
	}
	require.NoError(t, api.Create(t.Context(), guarded("Part", "kube-system")))
	rendered := template(t, tool(t, "helm", "helm"), publishingGuard...)
	for _, key := range []string{"ValidatingAdmissionPolicy /pod-reloader-guard", "ValidatingAdmissionPolicyBinding /pod-reloader-guard"} {
		require.NoError(t, api.Create(t.Context(), &unstructured.Unstructured{Object: rendered[key]}))
	}
	require.NoError(t, cluster.Apply(t.Context(), controlplane.Grant("by-mistake", controlplane.ServiceAccount("pod-reloader", "pod-reloader"),
		`{apiGroups: [guarded.example.com, other.example.com], resources: ["*"], verbs: ["*"]}`)))
}

// publish applies annotations as the program does.
func publish(t *testing.T, as client.Client, object *unstructured.Unstructured, annotations map[string]string) error {
	t.Helper()
	applied := &unstructured.Unstructured{}
	applied.SetGroupVersionKind(object.GroupVersionKind())
	applied.SetName(object.GetName())
	applied.SetNamespace(object.GetNamespace())
	applied.SetUID(object.GetUID())
	applied.SetAnnotations(annotations)
	text, err := json.Marshal(applied.Object)
	require.NoError(t, err)
	return as.Patch(t.Context(), object, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("pod-reloader/pod-reloader-referents"), client.ForceOwnership)
}

const (
	onlyChecksum   = "pod-reloader changes only the annotation with the checksum of a custom resource, not "
	ownAnnotations = "pod-reloader changes its own annotations only, not "
)

// publishingWrites are what the guard refuses of custom resources, and what it lets pass.
var publishingWrites = map[string]struct {
	kind, namespace string
	patch           client.Patch
	// refused is a part of the guard's message; empty if the guard lets the write pass.
	refused string
}{
	"Checksum":                   {kind: "Part", patch: annotating(publishedSum)},
	"ChecksumWithoutNamespace":   {kind: "Realm", patch: annotating("example.org/sum")},
	"ChecksumOfAnotherResource":  {kind: "Realm", patch: annotating(publishedSum), refused: onlyChecksum + "annotations of others"},
	"ForeignAnnotation":          {kind: "Part", patch: annotating("example.org/owner"), refused: onlyChecksum + "annotations of others"},
	"RemovedAnnotation":          {kind: "Part", patch: merging(`{"metadata":{"annotations":{"example.org/owner":null}}}`), refused: onlyChecksum + "annotations of others"},
	"AnnotationOfAWorkload":      {kind: "Part", patch: annotating("pod-reloader.cs.sap.com/config-hash"), refused: onlyChecksum + "annotations of others"},
	"Label":                      {kind: "Part", patch: merging(`{"metadata":{"labels":{"a":"b"}}}`), refused: onlyChecksum + "metadata"},
	"Finalizer":                  {kind: "Part", patch: merging(`{"metadata":{"finalizers":["example.org/hold"]}}`), refused: onlyChecksum + "metadata"},
	"Owner":                      {kind: "Realm", patch: merging(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"a","uid":"b"}]}}`), refused: onlyChecksum + "metadata"},
	"Spec":                       {kind: "Part", patch: merging(`{"spec":{"size":2}}`), refused: onlyChecksum + "the object"},
	"SpecWithoutNamespace":       {kind: "Realm", patch: merging(`{"spec":{"size":2}}`), refused: onlyChecksum + "the object"},
	"RemovedSpec":                {kind: "Part", patch: merging(`{"spec":null}`), refused: onlyChecksum + "the object"},
	"Status":                     {kind: "Part", patch: merging(`{"status":{"phase":"Failed"}}`), refused: onlyChecksum + "the object"},
	"Data":                       {kind: "Part", patch: merging(`{"data":{"key":"value"}}`), refused: onlyChecksum + "the object"},
	"Template":                   {kind: "Part", patch: merging(`{"spec":{"template":"text"}}`), refused: onlyChecksum + "the object"},
	"KubeSystem":                 {kind: "Part", namespace: "kube-system", patch: annotating(publishedSum), refused: "in kube-system"},
	"ChecksumOfAWorkload":        {kind: "Fleet", patch: annotating(publishedSum)},
	"HashOfAWorkload":            {kind: "Fleet", patch: annotating("pod-reloader.cs.sap.com/config-hash")},
	"ForeignAnnotationWorkload":  {kind: "Fleet", patch: annotating("example.org/owner"), refused: ownAnnotations + "annotations of others"},
	"SpecOfAWorkload":            {kind: "Fleet", patch: merging(`{"spec":{"size":2}}`), refused: ownAnnotations + "spec"},
	"ImageOfAWorkload":           {kind: "Fleet", patch: inTemplate("template", evil), refused: "pod-reloader changes nothing of containers"},
	"HashOfATemplate":            {kind: "Fleet", patch: inTemplate("template", hashed)},
	"HashInOtherFleets":          {kind: "Squadron", patch: inTemplate("pods", hashed)},
	"ImageInOtherFleets":         {kind: "Squadron", patch: inTemplate("pods", evil), refused: "pod-reloader changes nothing of containers"},
	"HashInOtherCronJobs":        {kind: "Tab", patch: inTemplate("template", hashed)},
	"ImageInOtherCronJobs":       {kind: "Tab", patch: inTemplate("template", evil), refused: "pod-reloader changes nothing of containers"},
	"HashInOtherSecrets":         {kind: "Safe", patch: inTemplate("template", hashed)},
	"ImageInOtherSecrets":        {kind: "Safe", patch: inTemplate("template", evil), refused: "pod-reloader changes nothing of containers"},
	"PauseOfOtherDeployments":    {kind: "App", patch: merging(`{"spec":{"paused":true}}`), refused: ownAnnotations + "spec"},
	"ChecksumOfSecretsOfAGroup":  {kind: "Vault", patch: annotating(publishedSum)},
	"SpecOfSecretsOfAGroup":      {kind: "Vault", patch: merging(`{"spec":{"size":2}}`), refused: onlyChecksum + "the object"},
	"AnnotationOfSecretsOfGroup": {kind: "Vault", patch: annotating("example.org/owner"), refused: onlyChecksum + "annotations of others"},
}

const (
	hashed = `{"metadata":{"annotations":{"pod-reloader.cs.sap.com/config-hash":"x"}}}`
	evil   = `{"spec":{"containers":[{"name":"main","image":"example.com/evil:1"}]}}`
)

// inTemplate changes the pod template in a field of the spec.
func inTemplate(field, change string) client.Patch {
	return merging(fmt.Sprintf(`{"spec":{%q:%s}}`, field, change))
}

// annotating sets an annotation.
func annotating(key string) client.Patch {
	return merging(fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, key))
}

func merging(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }
