package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

const large = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"n","namespace":"ns","uid":"u","generation":3,
	"managedFields":[{"manager":"x"}],"labels":{"l":"1","keep/l":"2"},"annotations":{"keep/a":"1","drop/b":"22"},"ownerReferences":[{"controller":true},
	{"apiVersion":"example.io/v1","kind":"Proxy","name":"p"},{"apiVersion":"batch/v1","kind":"CronJob","name":"c"}]},
	"status":{"replicas":1},
	"spec":{"replicas":3,"paused":false,"updateStrategy":{"rollingUpdate":{"partition":1}},
	"template":{"metadata":{"labels":{"l":"1"},"annotations":{"drop/c":"333"}},
	"spec":{"volumes":[{"secret":{"secretName":"s"}}],"containers":[{"image":"i","env":[{"name":"E","value":"v"},
	{"name":"F","valueFrom":{"configMapKeyRef":{"name":"c","key":"k","optional":true}}}]}]}}}}`

func ours(key string) bool { return strings.HasPrefix(key, "keep/") }

// decoded returns what is kept of a workload that is decoded by its Shape.
func decoded(t *testing.T, kind Kind, text []byte, keep Keep) Summary {
	t.Helper()
	value, err := skim.Decode(text, Shape(kind))
	require.NoError(t, err)
	raw, _ := value.(map[string]any)
	return Summary{Kind: kind, Kept: Object{Kind: kind, Raw: raw}.Keep(keep)}
}

func TestSummaryReadsWhatTheObjectReads(t *testing.T) {
	t.Parallel()
	o := object(t, "statefulset", large)
	s := decoded(t, o.Kind, []byte(large), Keep{Label: ours, Annotation: ours, Owner: func(group string) bool { return group == "example.io" }})
	sameReading(t, o, s)
	assert.Equal(t, []reference.Owner{{Group: "example.io", Kind: "Proxy", Name: "p"}}, s.Owners())
	assert.Empty(t, decoded(t, o.Kind, []byte(large), Keep{Label: ours, Annotation: ours}).Owners(), "none is kept")
	assert.Equal(t, map[string]string{"keep/a": "1"}, s.Annotations())
	assert.Empty(t, s.TemplateAnnotations())
	assert.Equal(t, map[string]string{"keep/l": "2"}, s.Labels())
}

// sameReading asserts that what was not kept does not change what is read.
func sameReading(t *testing.T, o Object, s Summary) {
	t.Helper()
	before, errBefore := o.References()
	after, errAfter := s.References()
	assert.Equal(t, before, after)
	assert.Equal(t, errBefore, errAfter)
	assert.Equal(t, []string{o.Namespace(), o.Name(), o.UID(), o.ResourceVersion(), o.Pending(), o.InPlace()},
		[]string{s.Namespace(), s.Name(), s.UID(), s.ResourceVersion(), s.Pending(), s.InPlace()})
	assert.Equal(t, o.Generation(), s.Generation())
	assert.Equal(t, o.Created(), s.Created())
	assert.Equal(t, []bool{o.HasTemplate(), o.Controlled(), o.Deleting(), o.Paused(), o.Finished(), o.Suspended(), o.ForbidsConcurrent()},
		[]bool{s.HasTemplate(), s.Controlled(), s.Deleting(), s.Paused(), s.Finished(), s.Suspended(), s.ForbidsConcurrent()})
	assert.Equal(t, o.Check(), s.Check())
	w, tpl := o.AnnotationSizes()
	sw, stpl := s.AnnotationSizes()
	assert.Equal(t, []int{w, tpl}, []int{sw, stpl}, "the sizes do not change")
}

func FuzzSummary(f *testing.F) {
	f.Add([]byte(large))
	f.Add([]byte(`{"metadata":{"annotations":{"x":1}},"spec":{"template":{"metadata":[],"spec":{"containers":{}}}}}`))
	f.Add([]byte(`{"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"spec":"x"}`))
	f.Add([]byte(`{"spec":{"paused":true,"workloadRef":{"name":"web"}}}`))
	f.Add([]byte(`{"spec":{"suspend":true}}`))
	f.Add([]byte(`{"status":{"active":1,"conditions":[{"type":"Suspended","status":"False"},{"type":"Failed","status":"True"}]}}`))
	custom, err := ParseKind("example.com/v1/Fleet=spec.updateStrategy.pods")
	require.NoError(f, err)
	whole, err := ParseKind("example.com/v1/Fleet=spec")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		var raw map[string]any
		value, err := skim.Decode(text, nil)
		if err != nil {
			return
		}
		if raw, _ = value.(map[string]any); raw == nil {
			return
		}
		all := func(string) bool { return true }
		for _, kind := range append(Builtin(), custom, whole) {
			o := Object{Kind: kind, Raw: raw}
			s := decoded(t, kind, text, Keep{Label: all, Annotation: all})
			sameReading(t, o, s)
			assert.Equal(t, o.Labels(), s.Labels())
			assert.Equal(t, o.Annotations(), s.Annotations())
			assert.Equal(t, o.TemplateAnnotations(), s.TemplateAnnotations())
		}
	})
}

func TestShapeLeavesOutWhatIsNotRead(t *testing.T) {
	t.Parallel()
	value, err := skim.Decode([]byte(large), Shape(object(t, "statefulset", large).Kind))
	require.NoError(t, err)
	text, err := json.Marshal(value)
	require.NoError(t, err)
	for _, gone := range []string{"managedFields", "status", "replicas", "image", `"E"`} {
		assert.NotContains(t, string(text), gone)
	}
}

func TestOnlyChangesOfKeptFieldsMatter(t *testing.T) {
	t.Parallel()
	const workload = `{"metadata":{"uid":"%s","resourceVersion":"%s","generation":%d,"labels":{"keep/l":"%s"},"annotations":{"keep/a":"%s","x":"%s"},
		"ownerReferences":[{"apiVersion":"%s/v1","kind":"A","name":"a"}]}}`
	readOwned := func(values ...any) Summary {
		return decoded(t, Deployment(), fmt.Appendf(nil, workload, values...), Keep{Label: ours, Annotation: ours, Owner: func(group string) bool { return group != "apps" }})
	}
	read := func(values ...any) Summary { return readOwned(append(values, "apps")...) }
	before := read("u", "5", 1, "l", "a", "x")
	for name, c := range map[string]struct {
		after            Summary
		matters, written bool
	}{
		"the status":                     {read("u", "6", 1, "l", "a", "x"), false, false},
		"an annotation that is not kept": {read("u", "6", 1, "l", "a", "y"), false, false},
		"the spec":                       {read("u", "6", 2, "l", "a", "x"), true, true},
		"created again":                  {read("v", "6", 1, "l", "a", "x"), true, true},
		"a label that is kept":           {read("u", "6", 1, "k", "a", "x"), true, false},
		"an annotation that is kept":     {read("u", "6", 1, "l", "b", "x"), true, true},
		"an owner that is kept":          {readOwned("u", "6", 1, "l", "a", "x", "a.io"), true, false},
		"a workload that was not there":  {Summary{}, true, true},
	} {
		assert.Equal(t, c.matters, c.after.Matters(before), name)
		assert.Equal(t, c.matters, before.Matters(c.after), name)
		assert.Equal(t, c.written, c.after.Written(before), name)
		assert.Equal(t, c.written, before.Written(c.after), name)
	}
}

// A Job that has finished is left alone: its status counts, that of other kinds does not.
func TestFinishedJobsMatter(t *testing.T) {
	t.Parallel()
	const text = `{"metadata":{"uid":"u","resourceVersion":"%s","generation":1},"status":{"conditions":[{"type":"%s","status":"%s"}]}}`
	job, cron := Job(), CronJob()
	keep := Keep{Label: ours, Annotation: ours}
	running := decoded(t, job, fmt.Appendf(nil, text, "5", "Suspended", "False"), keep)
	for _, tc := range []struct {
		kind, status string
		want         bool
	}{{"Complete", "True", true}, {"Failed", "True", true}, {"Failed", "False", false}, {"FailureTarget", "True", false}, {"SuccessCriteriaMet", "True", true}} {
		changed := fmt.Appendf(nil, text, "6", tc.kind, tc.status)
		after := decoded(t, job, changed, keep)
		assert.Equal(t, tc.want, after.Finished(), tc.kind)
		assert.Equal(t, tc.want, after.Matters(running), tc.kind)
		assert.False(t, decoded(t, cron, changed, keep).Finished(), "other kinds do not finish")
	}
}

func TestShareReadsTheSame(t *testing.T) {
	t.Parallel()
	kind := object(t, "statefulset", large).Kind
	all := func(string) bool { return true }
	keep := Keep{Label: ours, Annotation: all, Owner: all}
	before := decoded(t, kind, []byte(large), keep)
	for _, text := range []string{
		large,
		strings.ReplaceAll(large, `"keep/a":"1"`, `"keep/a":"2"`),
		strings.ReplaceAll(large, `"keep/a":"1",`, ``),
		strings.ReplaceAll(large, `"secretName":"s"`, `"secretName":"t"`),
		strings.ReplaceAll(large, `"uid":"u"`, `"uid":"v"`),
		strings.ReplaceAll(large, `"kind":"Proxy"`, `"kind":"Other"`),
	} {
		after := decoded(t, kind, []byte(text), keep)
		assert.Equal(t, after.Kept, after.Kept.Share(before.Kept))
		assert.Equal(t, decoded(t, kind, []byte(large), keep), before, "the earlier version stays as it is")
	}
}

func TestEmptySummary(t *testing.T) {
	t.Parallel()
	var s Summary
	assert.Empty(t, s.Name())
	assert.Empty(t, s.Annotations())
	assert.False(t, s.HasTemplate(), "an empty summary has no template")
}

func TestWithAnnotation(t *testing.T) {
	t.Parallel()
	o := Object{Kind: DaemonSet(), Raw: map[string]any{"metadata": map[string]any{
		"name": "web", "annotations": map[string]any{"a": "1", "b": "22"},
	}}}
	before := o.Summary()
	for name, tc := range map[string]struct {
		key, value string
		want       map[string]string
		size       int
	}{
		"added":    {"c", "333", map[string]string{"a": "1", "b": "22", "c": "333"}, 9},
		"replaced": {"b", "4444", map[string]string{"a": "1", "b": "4444"}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := before.WithAnnotation(tc.key, tc.value)
			assert.Equal(t, tc.want, after.Annotations())
			size, _ := after.AnnotationSizes()
			assert.Equal(t, tc.size, size)
			assert.Equal(t, "web", after.Name())
			assert.Equal(t, map[string]string{"a": "1", "b": "22"}, before.Annotations(), "a version in the cache does not change")
		})
	}
}
