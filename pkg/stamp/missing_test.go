package stamp

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The manifest names configmap/b, which is required, and secret/a, which is optional. No config object exists.
func TestMissingObjectsAreListedOrRequired(t *testing.T) {
	t.Parallel()
	keys := annotation.DefaultKeys()
	item := record.Item{Entry: "0123456789abcdef"}
	recorded, ok := record.New("", "1c9e04ab", map[reference.Ref]record.Item{cm("app-old"): item, cm("b"): item, secret("a"): item}).Text(1000)
	require.True(t, ok, "the Record fits")
	const reload, automatic, search = "configmap.reloader.stakater.com/reload", "reloader.stakater.com/auto", "reloader.stakater.com/search"
	class := reference.Ref{Kind: reference.SecretProviderClass, Name: "v"}
	list := func(refs ...reference.Ref) []reference.Ref { return refs }
	named, referenced := list(cm("x"), secret("a")), list(cm("b"), secret("a"))
	for name, c := range map[string]struct {
		annotations   map[string]string
		all           bool
		tracked, want []reference.Ref
	}{
		"SAP's lists":                  {map[string]string{keys.ConfigMaps: "x", keys.Secrets: "a"}, false, named, named},
		"a list of Reloader":           {map[string]string{reload: "x"}, false, list(cm("x")), list(cm("x"))},
		"auto, an optional reference":  {map[string]string{automatic: "true"}, false, referenced, list(cm("b"))},
		"all, an optional reference":   {nil, true, referenced, list(cm("b"))},
		"auto, and listed":             {map[string]string{automatic: "true", keys.Secrets: "a"}, false, referenced, referenced},
		"an expression, deleted":       {map[string]string{reload: "app-.*"}, false, list(cm("app-old")), nil},
		"search, a required reference": {map[string]string{search: "true"}, false, referenced, list(cm("b"))},
		"a class that no pod mounts":   {map[string]string{"secretproviderclass.reloader.stakater.com/reload": "v"}, false, list(class), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.reader.Dialects = []annotation.Dialect{annotation.SAP{Keys: keys}, annotation.Stakater{
				Keys: annotation.NewStakaterKeys(), AutoReloadAll: c.all, SecretProviderClasses: true,
			}}
			w.reader.Objects = func(string) (annotation.Objects, error) { return annotation.Listed{}, nil }
			raw := w.manifest(c.annotations)
			annotated := maps.Clone(raw["metadata"].(map[string]any)["annotations"].(map[string]any))
			annotated[keys.ConfigRecord] = recorded
			raw["metadata"].(map[string]any)["annotations"] = annotated
			req, _ := w.reader.NewWrite(nil, workload.Object{Kind: w.kind, Raw: raw})
			refs := req.New.Intent.Refs()
			require.Equal(t, c.tracked, refs)
			inputs := w.inputs(refs)
			assert.Equal(t, reference.List(c.want, 8), reference.List(req.New.Missing(refs, inputs.States), 8))
			warnings := strings.Join(missing(req, refs, inputs.States), "")
			listed := req.New.Intent.Listed()
			for _, ref := range refs {
				want := slices.Contains(c.want, ref) && listed[ref]
				assert.Equal(t, want, strings.Contains(warnings, ref.String()), "the webhook warns of %s", ref)
			}
		})
	}
}

// A user is warned of a missing object by the write that creates the workload.
func TestMissingObjectsWarnAtCreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Nil(t, w.create(w.manifest(w.lists("typo", ""))))
	assert.Contains(t, strings.Join(w.result.Warnings, " "), "configmap/typo")
}

// A user is warned of a missing object by the write that lists it, in whichever dialect, and by no other one.
func TestMissingObjectsWarn(t *testing.T) {
	t.Parallel()
	list := func(key, names string) func(*world, map[string]any) {
		return func(_ *world, raw map[string]any) { annotate(raw, key, names) }
	}
	keys := annotation.DefaultKeys()
	const reload = "configmap.reloader.stakater.com/reload"
	for name, c := range map[string]struct {
		write func(w *world, raw map[string]any)
		rule  Rule
	}{
		"lists edited":                        {list(keys.ConfigMaps, "a,typo"), RuleListsEdited},
		"with a new template":                 {both(list(keys.ConfigMaps, "a,typo"), release), RuleTemplateChanged},
		"in Reloader's list":                  {list(reload, "typo"), RuleAdopt},
		"in Reloader's list, with a template": {both(list(reload, "typo"), release), RuleTemplateChanged},
		"by a PUT without our annotations":    {both((*world).forget, list(reload, "typo")), RuleAnnotationsMissing},
		"with a managed annotation by hand": {both(list(reload, "typo"), func(w *world, raw map[string]any) {
			w.setManaged(raw, Hash, "x")
		}), RuleAnnotationsEdited},
		"with a request": {both(list(reload, "typo"), dummyOf(func(w *world) string { return w.bound(digest.AnyCurrent) })), RuleVerifiedReload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.reader.Dialects = []annotation.Dialect{annotation.SAP{Keys: keys}, annotation.Stakater{Keys: annotation.NewStakaterKeys()}}
			w.reader.Objects = func(string) (annotation.Objects, error) { return annotation.Listed{}, nil }
			annotate(w.stored, keys.Secrets, "a,gone")
			w.set(secret("a"), "A")
			w.quiesce()
			w.write(func(raw map[string]any) { c.write(w, raw) })
			assert.Equal(t, c.rule, w.result.Rule)
			warnings := strings.Join(w.result.Warnings, " ")
			assert.Contains(t, warnings, "configmap/typo")
			assert.NotContains(t, warnings, "secret/gone", "an earlier write has listed it")
			require.Nil(t, w.write(setImage("image:9")))
			assert.Empty(t, w.result.Warnings, "only on the write that brings it")
		})
	}
}
