package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, path, wrong string
	}{
		"a custom kind":             {"apps.kruise.io/v1alpha1/CloneSet=spec.template", "spec.template", ""},
		"a deep path":               {"batch/v1/CronJob=spec.jobTemplate.spec.template", "spec.jobTemplate.spec.template", ""},
		"a path as kubectl has it":  {"apps/v1/Deployment=.spec.template", "spec.template", ""},
		"empty":                     {"", "", "want group/version/Kind"},
		"no path":                   {"apps/v1/Deployment", "", "want group/version/Kind"},
		"no group":                  {"v1/ReplicationController=spec.template", "", "want group/version/Kind"},
		"a group in capitals":       {"Apps/v1/Deployment=spec.template", "", `"Apps" is not an API group`},
		"an empty group":            {"/v1/Deployment=spec.template", "", `"" is not an API group`},
		"a version that is none":    {"apps/1/Deployment=spec.template", "", `"1" is not an API version`},
		"a plural for a kind":       {"apps/v1/deployments=spec.template", "", `"deployments" is not a kind`},
		"an empty path":             {"apps/v1/Deployment=", "", `"" is not a field name`},
		"an index in the path":      {"apps/v1/Deployment=spec.pods[0]", "", `"pods[0]" is not a field name`},
		"a path with a double dot":  {"apps/v1/Deployment=spec..template", "", `"" is not a field name`},
		"a path outside of spec":    {"apps/v1/Deployment=status.template", "", "must begin with spec"},
		"a path into the metadata":  {"apps/v1/Deployment=metadata", "", "must begin with spec"},
		"a ReplicaSet":              {"apps/v1/ReplicaSet=spec.template", "", "a ReplicaSet does not replace its pods when its template changes: annotate the workload that owns it"},
		"another ReplicaSet":        {"example.com/v1/ReplicaSet=spec.template", "spec.template", ""},
		"all that is wrong":         {"Apps/1/x=status", "", `"Apps" is not an API group; "1" is not an API version such as v1 or v1beta1; "x" is not a kind such as CloneSet; the path must`},
		"something after the group": {"apps/v1/x/Deployment=spec.template", "", "want group/version/Kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, err := ParseKind(c.text)
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			again, err := ParseKind(kind.String())
			require.NoError(t, err)
			assert.Equal(t, kind, again)
			assert.Contains(t, kind.String(), "="+c.path)
		})
	}
}

// What only some kinds can do goes by group and kind, in any version.
func TestTraitsOfKinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ pausable, restartable, schedules bool }{
		"apps/v1/Deployment":           {pausable: true},
		"apps/v1beta2/Deployment":      {pausable: true},
		"apps/v1/StatefulSet":          {},
		"example.org/v1/Deployment":    {},
		"argoproj.io/v1alpha1/Rollout": {restartable: true},
		"argoproj.io/v1alpha1/Job":     {},
		"example.org/v1/Rollout":       {},
		"batch/v1/CronJob":             {schedules: true},
		"batch/v1/Job":                 {},
		"example.org/v1/CronJob":       {},
	} {
		kind, err := ParseKind(text + "=spec.template")
		require.NoError(t, err)
		assert.Equal(t, want.pausable, kind.Pausable(), text)
		assert.Equal(t, want.restartable, kind.Restartable(), text)
		assert.Equal(t, want.schedules, kind.Schedules(), text)
	}
}

func TestKeyIsNamedWithKindAndNamespace(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "Deployment shop/web", Key{Kind: "Deployment", Namespace: "shop", Name: "web"}.String())
}

func FuzzParseKind(f *testing.F) {
	f.Add("apps.kruise.io/v1alpha1/CloneSet=spec.template")
	f.Add("a/v1/B=.spec")
	f.Add("//=..")
	f.Fuzz(func(t *testing.T, text string) {
		kind, err := ParseKind(text)
		if err != nil {
			return
		}
		again, err := ParseKind(kind.String())
		require.NoError(t, err)
		assert.Equal(t, kind, again)
		assert.Equal(t, "spec", kind.Template[0])
	})
}

func TestKinds(t *testing.T) {
	t.Parallel()
	rollout, err := ParseKind("argoproj.io/v1alpha1/Rollout=spec.template")
	require.NoError(t, err)
	other, err := ParseKind("example.com/v1/Deployment=spec.pod")
	require.NoError(t, err)
	kinds := NewKinds(append(Builtin(), rollout, other)...)
	for name, want := range map[string][]string{
		"deploy":                 {"apps/v1/Deployment", "example.com/v1/Deployment"},
		"Deployment":             {"apps/v1/Deployment", "example.com/v1/Deployment"},
		"deployments.apps":       {"apps/v1/Deployment"},
		"sts":                    {"apps/v1/StatefulSet"},
		"ds":                     {"apps/v1/DaemonSet"},
		"cj":                     {"batch/v1/CronJob"},
		"jobs":                   {"batch/v1/Job"},
		"rollouts.argoproj.io":   {"argoproj.io/v1alpha1/Rollout"},
		"rollout.example.com":    nil,
		"pod":                    nil,
		"deployment.argoproj.io": nil,
	} {
		var found []string
		for _, kind := range kinds.Find(name) {
			found = append(found, kind.ID())
		}
		assert.Equal(t, want, found, name)
	}
	assert.Len(t, kinds.All(), 7)
	_, ok := kinds.Get(schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"})
	assert.False(t, ok, "Deployments have another version here")
	assert.Equal(t, "v1/ReplicationController", ID(schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"}))
	for _, kind := range Builtin() {
		assert.Equal(t, kind.Kind == "Job", kind.CreateOnly, kind.ID())
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	kind := func(text string) Kind {
		k, err := ParseKind(text)
		require.NoError(t, err)
		return k
	}
	before := NewKinds(kind("a.io/v1alpha1/Fleet=spec.template"), kind("b.io/v1/Fleet=spec.template"))
	after := before.Override(kind("a.io/v1/Fleet=spec.pods"), kind("a.io/v1/Other=spec.template"))
	var texts []string
	for _, k := range after.All() {
		texts = append(texts, k.String())
	}
	assert.Equal(t, []string{"a.io/v1/Fleet=spec.pods", "a.io/v1/Other=spec.template", "b.io/v1/Fleet=spec.template"}, texts,
		"another version of a kind is the same kind, one of another group is not")
	assert.Len(t, before.All(), 2, "the set itself stays as it is")
}
