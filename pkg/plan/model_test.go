package plan

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// random makes inputs of all that the decisions depend on.
type random struct{ *rand.Rand }

func (r random) one(values ...string) string { return values[r.IntN(len(values))] }

func (r random) chance() bool { return r.IntN(2) == 0 }

// annotations are some of both dialects.
func (r random) annotations() map[string]any {
	const domain = "reloader.stakater.com/"
	keys := map[string][]string{
		domain + "auto": {"true", "false", "T", "no", ""}, "configmap." + domain + "auto": {"true", "false", "x", ""},
		"secret." + domain + "auto": {"true", "0"}, domain + "search": {"true", "false", "True"},
		"configmap." + domain + "reload":           {"app", "a.*|x", "app, absent", "(", "", "app|db", "other,ap", "A", "a.p"},
		"secret." + domain + "reload":              {"db", "d|app", ".*", "(?i)DB"},
		"configmaps.exclude." + domain + "reload":  {"app", " other ", "A"},
		"pod-reloader.cs.sap.com/configmaps":       {"app", "absent", "A"},
		"pod-reloader.cs.sap.com/secrets":          {"db"},
		"secretproviderclass." + domain + "auto":   {"true"},
		"secretproviderclass." + domain + "reload": {"vault", "va.*", ".*, x"},
		"deployment." + domain + "pause-period":    {"5m", "soon", "-1s", "0s", "1000h"},
		"deployment." + domain + "paused-at":       {"2026-01-01T00:00:00Z"},
		domain + "rollout-strategy":                {"restart", "rollout", "x"},
	}
	set := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(keys)) { // so that a seed means the same in each run
		if r.IntN(4) == 0 {
			set[key] = r.one(keys[key]...)
		}
	}
	return set
}

// podSpec names the objects in some of the places of a pod spec.
func (r random) podSpec() map[string]any {
	container := map[string]any{"name": "c"}
	spec := map[string]any{"containers": []any{container}}
	if r.chance() {
		container["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": r.one("app", "other"), "optional": r.chance()}}}
	}
	if r.chance() {
		container["env"] = []any{map[string]any{"name": r.one("STAKATER_APP_CONFIGMAP", "STAKATER_DB_SECRET", "X"), "value": "1"}}
	}
	driver := r.one("secrets-store.csi.k8s.io", "secrets-store-gke.csi.k8s.io")
	volumes := []any{
		map[string]any{"name": "v1", "configMap": map[string]any{"name": r.one("app", "absent")}},
		map[string]any{"name": "v2", "projected": map[string]any{"sources": []any{map[string]any{"secret": map[string]any{"name": "db"}}}}},
		map[string]any{"name": "v3", "csi": map[string]any{"driver": driver, "volumeAttributes": map[string]any{"secretProviderClass": "vault"}}},
	}
	spec["volumes"] = volumes[:r.IntN(4)]
	if r.chance() {
		container["volumeMounts"] = []any{map[string]any{"name": r.one("v1", "v2", "v3"), "mountPath": "/v"}}
	}
	if r.IntN(4) == 0 {
		spec["imagePullSecrets"] = []any{map[string]any{"name": r.one("db", "pull")}}
	}
	return spec
}

func (r random) workload(kinds []workload.Kind) workload.Object {
	kind := kinds[r.IntN(len(kinds))]
	metadata := map[string]any{"name": "w", "namespace": r.one("shop", "kube-system", "dev"), "annotations": r.annotations()}
	if r.chance() {
		metadata["labels"] = map[string]any{"tier": "web"}
	}
	if r.IntN(8) == 0 {
		metadata["labels"] = map[string]any{"pod-reloader.cs.sap.com/" + r.one("ignored", "disabled"): "true"}
	}
	var at any = map[string]any{"metadata": map[string]any{"annotations": r.annotations()}, "spec": r.podSpec()}
	for i := len(kind.Template) - 1; i > 0; i-- {
		at = map[string]any{kind.Template[i]: at}
	}
	spec := at.(map[string]any)
	spec["paused"] = r.chance()
	if kind.Schedules() {
		spec["suspend"], spec["concurrencyPolicy"] = r.chance(), r.one("Allow", "Forbid", "Replace")
	}
	return workload.Object{Kind: kind, Raw: map[string]any{"metadata": metadata, "spec": spec}}
}

func (r random) traits() annotation.Traits {
	return annotation.Traits{Ignored: r.IntN(5) == 0, Marked: r.chance()}
}

// comparison is one of a single workload.
func (r random) comparison(patterns *pattern.Cache) *comparison {
	keys := annotation.DefaultKeys()
	dialect := annotation.Stakater{
		Keys: annotation.NewStakaterKeys(), Patterns: patterns, AutoReloadAll: r.chance(), ReloadOnCreate: r.chance(), ReloadOnDelete: r.chance(),
		SecretProviderClasses: r.chance(),
	}
	if r.IntN(4) == 0 {
		dialect.Without = []reference.Kind{reference.Secret}
	}
	rollout := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, Template: []string{"spec", "template"}}
	foreign := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.openshift.io", Version: "v1", Kind: "DeploymentConfig"}, Template: []string{"spec", "template"}}
	known := append(workload.Builtin(), rollout)
	objects := map[reference.Ref]annotation.Traits{}
	for _, ref := range []reference.Ref{
		{Kind: reference.ConfigMap, Name: "app"},
		{Kind: reference.ConfigMap, Name: "other"},
		{Kind: reference.ConfigMap, Name: "xdb"},
		{Kind: reference.Secret, Name: "db"},
		{Kind: reference.Secret, Name: "app"},
		{Kind: reference.SecretProviderClass, Name: "vault"},
	} {
		objects[ref] = r.traits()
	}
	object := r.workload(append(known, foreign))
	in := Input{
		Workloads: []workload.Object{object}, Objects: map[string]map[reference.Ref]annotation.Traits{object.Namespace(): objects},
		Reloader: Reloader{
			Dialect: dialect, Variables: r.chance(), NotifyOnly: r.IntN(8) == 0, Kinds: workload.NewKinds(append(known, foreign)[r.IntN(2):]...),
			OneKind: r.IntN(4) == 0, ReloadOnCreate: dialect.ReloadOnCreate && r.chance(), ReloadOnDelete: dialect.ReloadOnDelete && r.chance(),
		},
		Here: Here{
			Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}, dialect}, Kinds: workload.NewKinds(known...),
			ReloadMissingRequired: r.chance(),
		},
	}
	in.Here.NotifyOnly = in.Reloader.NotifyOnly
	if r.IntN(4) == 0 {
		dialect.Without, in.Here.WithoutSecrets = []reference.Kind{reference.Secret}, true
		in.Here.Dialects = []annotation.Dialect{annotation.SAP{Keys: keys, WithoutSecrets: true}, dialect}
	}
	if r.IntN(4) == 0 {
		in.Here.Scope.ObjectSelector = labels.SelectorFromSet(labels.Set{"tier": "web"})
	}
	if r.IntN(4) == 0 {
		in.Reloader.IgnoredNamespaces, in.Here.Scope.Ignored = []string{"dev"}, []string{"dev"}
	}
	return &comparison{Input: in, groups: map[Reason]*Group{}, named: map[string]map[reference.Ref]bool{}, compiled: compiled{}}
}

// With all rules exchanged the model is this program, so that each difference has a reason among the rules.
func TestModelOfReloaderWithOurRulesDecidesAsThisProgram(t *testing.T) {
	t.Parallel()
	reloads, patterns := 0, &pattern.Cache{}
	for seed := range uint64(1_000) {
		c := random{rand.New(rand.NewPCG(seed, 1))}.comparison(patterns)
		s := c.read(c.Workloads[0])
		for _, ref := range s.candidates {
			for _, event := range c.events(s, ref) {
				ch := change{ref: ref, event: event, traits: s.objects[ref]}
				if _, listed := s.sap.Tracked[ref]; listed && (ch.traits.Ignored || !ch.traits.Marked) && event == policy.Deleted {
					continue // the object's own annotations, which only one dialect reads, are gone with it
				}
				ours := c.ourAction(s, ch)
				if ours != Nothing {
					reloads++
				}
				require.Equal(t, ours, c.reloaderModel(rules()...).decide(s, ch), "seed %d: %s %s of\n%+v\nwith %+v", seed, ref, event, s.object.Raw, c.Reloader.Dialect)
			}
		}
	}
	assert.Greater(t, reloads, 300, "the inputs reload")
}

// A rule that explains nothing would not be needed, or is not tried.
func TestEveryRuleExplainsADifference(t *testing.T) {
	t.Parallel()
	patterns := &pattern.Cache{}
	found := map[Reason]bool{byLimit: true} // a list of a thousand names has a test of its own
	for seed := range uint64(1_000) {
		c := random{rand.New(rand.NewPCG(seed, 2))}.comparison(patterns)
		c.compare(c.Workloads[0])
		for _, group := range c.report().Groups {
			found[group.Reason] = true
		}
	}
	for _, rule := range rules() {
		assert.True(t, found[rule], string(rule))
	}
	for reason := range explanations() {
		assert.True(t, found[reason] || reason == byUnnamedObject, string(reason))
	}
}
