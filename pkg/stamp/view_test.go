package stamp

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestReadOfView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := w.manifest(w.lists("a", ""))
	raw["metadata"].(map[string]any)["generation"] = int64(7)
	annotate(raw, "x", "12345")
	w.setManaged(raw, LastReload, "123")
	view, problems := w.reader.Read(workload.Object{Kind: w.kind, Raw: raw})
	assert.Empty(t, problems)
	assert.False(t, view.Excluded, "the workload has no label that excludes it")
	assert.Equal(t, map[reference.Ref]bool{cm("b"): true, secret("a"): false}, view.Required)
	assert.EqualValues(t, 7, view.Generation)
	others := len(w.keys.ConfigMaps) + 1 + len(w.keys.Secrets) + len("x12345")
	managed := len(w.keys.ConfigHash) + len(w.keys.ConfigRecord) + len(w.keys.LastReload)
	assert.Equal(t, maxOnWorkload-others-managed, view.WorkloadBudget, "values of ours do not count, all their keys do")
	assert.Equal(t, maxAnnotations-len(w.keys.ConfigHash)-len(w.keys.ConfigRestart), view.TemplateBudget)

	ours := func(key string) bool { return key != "x" }
	kept := workload.Object{Kind: w.kind, Raw: raw}.Keep(workload.Keep{Label: ours, Annotation: ours})
	small, _ := w.reader.ReadSummary(workload.Summary{Kind: w.kind, Kept: kept})
	assert.Equal(t, view, small, "the same from what is kept of it")
}

// The Deployment controller copies the annotations to the ReplicaSet, beside its own. Their longest values are those after many rollbacks.
func TestFullWorkloadLeavesTheReplicaSetValid(t *testing.T) {
	t.Parallel()
	const prefix, number = "deployment.kubernetes.io/", "2147483647"
	added := 0
	for key, value := range map[string]string{
		"revision": number, "desired-replicas": number, "max-replicas": number, "revision-history": strings.Repeat("7", 2000),
	} {
		added += len(prefix) + len(key) + len(value)
	}
	w := newWorld(t)
	raw := w.manifest(w.lists("a", ""))
	used, _ := workload.Object{Kind: w.kind, Raw: raw}.AnnotationSizes()
	keys := len(w.keys.ConfigHash) + len(w.keys.ConfigRecord) + len(w.keys.LastReload)
	view, _ := w.reader.Read(workload.Object{Kind: w.kind, Raw: raw})
	assert.LessOrEqual(t, used+keys+view.WorkloadBudget+added, maxAnnotations, "with values of ours that take the whole budget")
}

func TestReadOfWrongTypes(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(map[string]any){
		"no template":          func(raw map[string]any) { delete(raw["spec"].(map[string]any), "template") },
		"template is a string": func(raw map[string]any) { raw["spec"].(map[string]any)["template"] = "x" },
		"metadata of the template is a list": func(raw map[string]any) {
			raw["spec"].(map[string]any)["template"].(map[string]any)["metadata"] = []any{"x"}
		},
		"annotations of the template are a list": func(raw map[string]any) {
			raw["spec"].(map[string]any)["template"].(map[string]any)["metadata"] = map[string]any{"annotations": []any{"x"}}
		},
		"containers are a map": func(raw map[string]any) {
			raw["spec"].(map[string]any)["template"].(map[string]any)["spec"] = map[string]any{"containers": map[string]any{"env": map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "x"}}}}}
		},
		"the pod spec is a string": func(raw map[string]any) {
			raw["spec"].(map[string]any)["template"].(map[string]any)["spec"] = "x"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			raw := w.manifest(w.lists("a", ""))
			wrong(raw)
			o := workload.Object{Kind: w.kind, Raw: raw}
			_, problems := w.reader.Read(o)
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0].Message, "correct it")
			req, _ := w.reader.NewWrite(nil, o)
			plan := Choose(req)
			result := plan.Apply(req, w.inputs(plan.Reads))
			assert.Nil(t, result.Reject)
			patched := patch(t, raw, w.reader.Operations(o, result.Managed))
			assert.Equal(t, w.stripped(raw), w.stripped(patched), "nothing of others is replaced")
			_, problems = w.reader.Read(workload.Object{Kind: w.kind, Raw: w.manifest(nil)})
			assert.Empty(t, problems)
		})
	}
}

// A controller that updates pods in place restarts no container for an annotation. A variable makes it replace the pod, or refuse the template.
func TestReloadWithoutARestartIsAProblem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strategy annotation.ReloadStrategy
		update   string
		want     string
	}{
		"annotations replace the pods":  {annotation.ConfigHash, "ReCreate", ""},
		"if possible, by the hash":      {annotation.ConfigHash, workload.InPlaceIfPossible, workload.InPlaceIfPossible},
		"if possible, by annotations":   {annotation.Annotations, workload.InPlaceIfPossible, workload.InPlaceIfPossible},
		"if possible, by default":       {"", workload.InPlaceIfPossible, workload.InPlaceIfPossible},
		"variables replace the pods":    {annotation.EnvVars, workload.InPlaceIfPossible, ""},
		"only in place, by the hash":    {annotation.ConfigHash, workload.InPlaceOnly, workload.InPlaceOnly},
		"only in place, with variables": {annotation.EnvVars, workload.InPlaceOnly, workload.InPlaceOnly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.reader.Strategy = c.strategy
			raw := w.manifest(w.lists("a", ""))
			raw["spec"].(map[string]any)["updateStrategy"] = map[string]any{"type": c.update}
			view, problems := w.reader.Read(workload.Object{Kind: w.kind, Raw: raw})
			assert.Equal(t, c.want, view.InPlace)
			small, same := w.reader.ReadSummary(workload.Object{Kind: w.kind, Raw: raw}.Summary())
			assert.Equal(t, c.want, small.InPlace)
			assert.Equal(t, problems, same)
			if c.want == "" {
				assert.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0].Message, "the update strategy "+c.want+" restarts no container")
			unasked := w.manifest(nil)
			unasked["spec"].(map[string]any)["updateStrategy"] = map[string]any{"type": c.update}
			_, problems = w.reader.Read(workload.Object{Kind: w.kind, Raw: unasked})
			assert.Empty(t, problems, "the annotations ask for nothing")
		})
	}
}

func TestWriteHasTheProblemsThatItBrings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := workload.Object{Kind: w.kind, Raw: w.manifest(w.lists("A", ""))}
	_, problems := w.reader.NewWrite(nil, old)
	require.Len(t, problems, 1)
	_, problems = w.reader.NewWrite(&old, workload.Object{Kind: w.kind, Raw: w.manifest(w.lists("A", "B"))})
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0].Message, `"B"`)
}

func TestDummyGeneration(t *testing.T) {
	t.Parallel()
	w := started(t)
	for range 3 {
		w.write(setImage("image:" + strconv.Itoa(w.restarts+2)))
	}
	_, fits := w.request(func(raw map[string]any) { w.setManaged(raw, Dummy, "x@4") }).dummy()
	assert.True(t, fits, "the request is for the present generation")
	_, fits = w.request(func(raw map[string]any) { w.setManaged(raw, Dummy, "x@3") }).dummy()
	assert.False(t, fits, "the request is for an earlier generation")
}
