package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func template(path ...string) []string { return path }

func kind(group, version, name string) workload.Kind {
	return workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, Template: template("spec", "template")}
}

// kinds are those of the program, with Rollouts.
func kinds() workload.Kinds {
	return workload.NewKinds(append(workload.Builtin(), kind("argoproj.io", "v1alpha1", "Rollout"))...)
}

// object reads a workload in YAML; its kind need not be one of the program.
func object(t *testing.T, manifest string) workload.Object {
	t.Helper()
	raw := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &raw))
	gv, err := schema.ParseGroupVersion(raw["apiVersion"].(string))
	require.NoError(t, err)
	gvk := gv.WithKind(raw["kind"].(string))
	of, known := kinds().Get(gvk)
	if !known {
		of = kind(gvk.Group, gvk.Version, gvk.Kind)
	}
	return workload.Object{Kind: of, Raw: raw}
}

// deployment is one with annotations and a pod spec, each as lines of YAML.
func deployment(annotations, pod string) string {
	return "apiVersion: apps/v1\nkind: Deployment\n" + described("  ", annotations, pod)
}

func described(indent, annotations, pod string) string {
	return "metadata:\n  name: cart\n  namespace: shop\n  annotations: {" + annotations + "}\nspec:\n" +
		indent + "template:\n" + indent + "  spec: {containers: [{name: cart" + pod + "}\n"
}

const (
	domain = "reloader.stakater.com/"
	auto   = domain + `auto: "true"`
	// reads is the end of a container that reads configmap/app, and of its list; noRefs that of one without references; mounts
	// has a volume v with a SecretProviderClass.
	reads  = `, envFrom: [{configMapRef: {name: app}}]}]`
	mounts = `}], volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: vault}}}]`
	noRefs = `}]`
)

func cm(name string) reference.Ref { return reference.Ref{Kind: reference.ConfigMap, Name: name} }

// input is one with flags as they are by default, and some objects.
func input(t *testing.T, manifests ...string) plan.Input {
	t.Helper()
	keys := annotation.DefaultKeys()
	dialect := annotation.Stakater{Keys: annotation.NewStakaterKeys()}
	in := plan.Input{
		Objects: map[string]map[reference.Ref]annotation.Traits{"shop": {
			cm("app"): {}, cm("app-eu"): {}, cm("marked"): {Marked: true}, {Kind: reference.Secret, Name: "pull"}: {},
		}},
		Reloader: plan.Reloader{Dialect: dialect, Variables: true, Kinds: kinds().Override(kind("apps.openshift.io", "v1", "DeploymentConfig"))},
		Here:     plan.Here{Keys: keys, Kinds: kinds()},
	}
	for _, manifest := range manifests {
		in.Workloads = append(in.Workloads, object(t, manifest))
	}
	speak(&in, dialect)
	return in
}

// speak lets both programs read a dialect.
func speak(in *plan.Input, dialect annotation.Stakater) {
	in.Reloader.Dialect, in.Reloader.ReloadOnCreate, in.Reloader.ReloadOnDelete = dialect, dialect.ReloadOnCreate, dialect.ReloadOnDelete
	in.Here.Dialects = []annotation.Dialect{annotation.SAP{Keys: in.Here.Keys}, dialect}
}

// classes lets both programs follow SecretProviderClasses.
func classes(in *plan.Input) {
	dialect := in.Reloader.Dialect
	dialect.SecretProviderClasses = true
	speak(in, dialect)
}

func TestListsBeyondTheLimitAreADifference(t *testing.T) {
	t.Parallel()
	in := input(t, deployment(`configmap.`+domain+`reload: "x.*"`, noRefs))
	for i := range 1002 {
		in.Objects["shop"][cm(fmt.Sprintf("x%04d", i))] = annotation.Traits{}
	}
	assert.Equal(t, []string{
		"limit: configmap/x1000 modified restart nothing", "limit: configmap/x1001 modified restart nothing", "problem",
	}, summary(plan.Compare(in)))
}

// A workload that neither program looks at is not compared, whatever its annotations say.
func TestWorkloadsOutOfScopeAreNotCompared(t *testing.T) {
	t.Parallel()
	manifest := deployment(auto+`, deployment.`+domain+`pause-period: soon`, reads)
	for namespace, want := range map[string]int{"shop": 1, "bank": 0} {
		in := input(t, manifest)
		in.Reloader.Namespaces, in.Here.Scope.Namespaces = []string{namespace}, []string{namespace}
		report := plan.Compare(in)
		assert.Equal(t, want, report.Compared, namespace)
		assert.Equal(t, want, report.Different, namespace)
	}
	in := input(t, manifest)
	in.Reloader.Namespaces = []string{"bank"}
	assert.Equal(t, 1, plan.Compare(in).Compared, "one program looks at it")
}

func TestNamespaceSelectorBesideTheOnlyNamespace(t *testing.T) {
	t.Parallel()
	in := input(t, deployment(auto, reads))
	in.Reloader.Namespaces, in.Here.Scope.Namespaces = []string{"shop"}, []string{"shop"}
	assert.Empty(t, plan.Compare(in).Groups)
	in.Workloads[0].Raw["metadata"].(map[string]any)["namespace"] = "dev"
	assert.Empty(t, plan.Compare(in).Groups, "neither watches it")
}
