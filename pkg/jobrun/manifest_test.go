package jobrun_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func storeOf() jobrun.Store {
	return jobrun.Store{Namespace: "pod-reloader", Installation: "reloader", Keys: annotation.DefaultKeys()}
}

func TestManifestComesBack(t *testing.T) {
	t.Parallel()
	s := storeOf()
	m := jobrun.Manifest{
		Job: jobOf(nil, map[string]any{"backoffLimit": int64(3)}, nil).Replacement(s.Keys), UID: "u1",
		Reload: record.LastReload{
			Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Hash: "h", Cause: record.CauseConfigChange,
			Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
		},
	}
	m.Job.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "gitops", Operation: metav1.ManagedFieldsOperationApply}})
	for _, rootCA := range []string{"uid-of-the-root-ca", ""} {
		m.RootCA = rootCA
		secret, err := s.Encode(m)
		require.NoError(t, err)
		back, err := s.Decode(secret)
		require.NoError(t, err)
		assert.Equal(t, m, back)
	}
	secret, err := s.Encode(m)
	require.NoError(t, err)
	job, err := base64.StdEncoding.DecodeString(secret.Object["data"].(map[string]any)["job.json"].(string))
	require.NoError(t, err)
	assert.NotContains(t, string(job), "managedFields", "server-side apply of the manifest would be refused")
	assert.Equal(t, "pod-reloader", secret.GetNamespace())
	assert.Equal(t, "reloader-job-u1", secret.GetName())
	assert.Equal(t, "reloader", secret.GetLabels()["pod-reloader.io/recreation"])
}

// --annotation-prefix may change while a Job is deleted and not yet created again.
func TestManifestIsReadUnderAnotherPrefix(t *testing.T) {
	t.Parallel()
	before, after := storeOf(), storeOf()
	keys, err := annotation.NewKeys("example.org")
	require.NoError(t, err)
	after.Keys = keys
	secret, err := before.Encode(jobrun.Manifest{Job: jobOf(nil, nil, nil).Replacement(before.Keys), UID: "u1"})
	require.NoError(t, err)
	selector, err := labels.Parse(after.Selector())
	require.NoError(t, err)
	assert.True(t, selector.Matches(labels.Set(secret.GetLabels())), "%s does not select %v", selector, secret.GetLabels())
	m, err := after.Decode(secret)
	require.NoError(t, err)
	assert.Equal(t, "u1", m.UID)
	assert.Equal(t, "u1", m.ToCreate().GetAnnotations()[keys.RecreatedFrom])
}

// The answer to the creation of a Job may be lost, and the next leader may have another --annotation-prefix.
func TestReplacementIsKnownUnderEachPrefix(t *testing.T) {
	t.Parallel()
	before, after := storeOf(), storeOf()
	keys, err := annotation.NewKeys("example.org")
	require.NoError(t, err)
	after.Keys = keys
	old := jobOf(map[string]any{"annotations": map[string]any{"example.com/step": "1"}}, nil, nil)
	secret, err := before.Encode(jobrun.Manifest{Job: old.Replacement(before.Keys), UID: "u1"})
	require.NoError(t, err)
	m, err := after.Decode(secret)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		annotations map[string]any
		want        bool
	}{
		"created under the former prefix":  {map[string]any{prefix + "recreated-from": "u1"}, true},
		"created under the present prefix": {map[string]any{"example.org/recreated-from": "u1"}, true},
		"another Job, without annotations": {},
		"another Job, as of a GitOps tool": {annotations: map[string]any{"example.com/step": "1"}},
		"a replacement of another Job":     {annotations: map[string]any{prefix + "recreated-from": "u0"}},
		"the UID is in another annotation": {annotations: map[string]any{"example.com/uid": "u1"}},
	} {
		job := jobrun.Job{Object: workload.Object{Kind: workload.Job(), Raw: map[string]any{"metadata": map[string]any{"annotations": tc.annotations}}}}
		assert.Equal(t, tc.want, m.IsReplacement(job), name)
	}
}

func TestSecretThatIsNoManifest(t *testing.T) {
	t.Parallel()
	s := storeOf()
	const reload = `{"time":"2026-01-02T03:04:05.000Z","hash":"h","cause":"config-change"}`
	const job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"b"}}`
	for name, tc := range map[string]struct {
		data map[string]string
		want string
	}{
		"empty":                  {want: "has no job.json"},
		"no JSON":                {data: map[string]string{"job.json": "{"}, want: "decode job.json"},
		"another kind":           {data: map[string]string{"job.json": strings.Replace(job, "Job", "Pod", 1), "uid": "u"}, want: "not a Job that replaces another one"},
		"the Job replaces none":  {data: map[string]string{"job.json": job, "last-reload.json": reload}, want: "not a Job that replaces"},
		"the UID is empty":       {data: map[string]string{"job.json": job, "uid": "", "last-reload.json": reload}, want: "not a Job that replaces"},
		"without the reload":     {data: map[string]string{"job.json": job, "uid": "u"}, want: "has no last-reload.json"},
		"the reload is no JSON":  {data: map[string]string{"job.json": job, "uid": "u", "last-reload.json": "x"}, want: "decode last-reload.json"},
		"complete, as a control": {data: map[string]string{"job.json": job, "uid": "u", "last-reload.json": reload}},
	} {
		data := map[string]any{}
		for key, text := range tc.data {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		_, err := s.Decode(&unstructured.Unstructured{Object: map[string]any{"data": data}})
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
	}
	_, err := s.Decode(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"job.json": "%"}}})
	require.ErrorContains(t, err, "decode job.json: illegal base64")
	secret, err := s.Encode(jobrun.Manifest{Job: jobOf(nil, nil, nil).Replacement(s.Keys), UID: "u1", RootCA: "r"})
	require.NoError(t, err)
	secret.Object["data"].(map[string]any)["kube-root-ca.crt.uid"] = "%"
	_, err = s.Decode(secret)
	require.ErrorContains(t, err, "decode kube-root-ca.crt.uid: illegal base64")
}

func TestNamesOfALongInstallationAreValid(t *testing.T) {
	t.Parallel()
	s := storeOf()
	s.Installation = strings.Repeat("a", 53) + "." + strings.Repeat("b", 199)
	_, label := s.Label()
	assert.LessOrEqual(t, len(label), 63)
	assert.Regexp(t, `^a{53}-[0-9a-f]{8}$`, label)
	other := s
	other.Installation += "c"
	_, another := other.Label()
	assert.NotEqual(t, label, another)
	assert.Equal(t, label+"-job-0000", s.Name("0000"))
}

func TestInstallationThatFitsIntoALabelIsItsValue(t *testing.T) {
	t.Parallel()
	s := storeOf()
	s.Installation = strings.Repeat("a", 63)
	_, value := s.Label()
	assert.Equal(t, s.Installation, value)
	assert.Equal(t, "pod-reloader.io/recreation="+value, s.Selector())
}
