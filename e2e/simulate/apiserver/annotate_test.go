package apiserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func kindOf(t *testing.T, r world.Resource) *kind {
	t.Helper()
	for _, k := range kinds() {
		if k.Resource == r {
			return k
		}
	}
	t.Fatalf("no kind %s", r.Plural)
	return nil
}

// TestAnnotatedIsThatOfThePatch compares the short way with the library.
func TestAnnotatedIsThatOfThePatch(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "cart", Annotations: map[string]string{"note": "a", "example.com/x": "b"}}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"sum": "1"}}}
	deployment := newItem(kindOf(t, world.Deployments), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: pod}})
	cron := &batchv1.CronJob{ObjectMeta: meta}
	cron.Spec.JobTemplate.Spec.Template = pod
	cronJob := newItem(kindOf(t, world.CronJobs), cron)
	bare := newItem(kindOf(t, world.Deployments), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "cart"}})
	config := newItem(kindOf(t, world.ConfigMaps), &corev1.ConfigMap{ObjectMeta: meta})
	for name, tc := range map[string]struct {
		on    *item
		patch string
		short bool
	}{
		"add":                {deployment, `[{"op":"add","path":"/metadata/annotations/new","value":"v"}]`, true},
		"add what is there":  {deployment, `[{"op":"add","path":"/metadata/annotations/note","value":"v"}]`, true},
		"escaped":            {deployment, `[{"op":"replace","path":"/metadata/annotations/example.com~1x","value":"<\u00fc>"}]`, true},
		"escaped twice":      {deployment, `[{"op":"add","path":"/metadata/annotations/a~01b","value":"v"}]`, true},
		"remove":             {deployment, `[{"op":"remove","path":"/metadata/annotations/note"}]`, true},
		"test and replace":   {deployment, `[{"op":"test","path":"/metadata/annotations/note","value":"a"},{"op":"replace","path":"/metadata/annotations/note","value":"c"}]`, true},
		"template":           {deployment, `[{"op":"add","path":"/spec/template/metadata/annotations/sum","value":"2"},{"op":"remove","path":"/metadata/annotations/note"}]`, true},
		"template of a job":  {cronJob, `[{"op":"add","path":"/spec/jobTemplate/spec/template/metadata/annotations/sum","value":"2"}]`, true},
		"another template":   {cronJob, `[{"op":"add","path":"/spec/template/metadata/annotations/sum","value":"2"}]`, false},
		"test fails":         {deployment, `[{"op":"test","path":"/metadata/annotations/note","value":"z"}]`, false},
		"test of nothing":    {deployment, `[{"op":"test","path":"/metadata/annotations/none","value":""}]`, false},
		"replace nothing":    {deployment, `[{"op":"replace","path":"/metadata/annotations/none","value":"v"}]`, false},
		"remove nothing":     {deployment, `[{"op":"remove","path":"/metadata/annotations/none"}]`, false},
		"no place":           {bare, `[{"op":"add","path":"/metadata/annotations/new","value":"v"}]`, false},
		"the whole map":      {bare, `[{"op":"add","path":"/metadata/annotations","value":{"new":"v"}}]`, false},
		"no string":          {deployment, `[{"op":"add","path":"/metadata/annotations/new","value":1}]`, false},
		"below":              {deployment, `[{"op":"add","path":"/metadata/annotations/note/deeper","value":"v"}]`, false},
		"move":               {deployment, `[{"op":"move","from":"/metadata/annotations/note","path":"/metadata/annotations/new"}]`, false},
		"something else too": {deployment, `[{"op":"add","path":"/metadata/annotations/new","value":"v"},{"op":"add","path":"/spec/replicas","value":3}]`, false},
		"kind without parts": {config, `[{"op":"add","path":"/metadata/annotations/new","value":"v"}]`, false},
		"nothing":            {deployment, `[]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := string(tc.on.json())
			patch, err := decodeOperations([]byte(tc.patch))
			require.NoError(t, err)
			next, short := patch.annotated(tc.on)
			require.Equal(t, tc.short, short)
			assert.Equal(t, before, string(toJSON(tc.on.typed)), "the item never changes")
			if !short {
				return
			}
			text, err := patch.patch(tc.on)
			require.NoError(t, err)
			want, err := tc.on.kind.decode(text)
			require.NoError(t, err)
			assert.JSONEq(t, string(toJSON(want)), string(toJSON(next)))
		})
	}
}
