package edge_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// A dry run gets the answer that the real write would get, and leaves nothing.
func TestDryRunAnswersTheSameAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	for _, kind := range fixture.Kinds {
		var dry *unstructured.Unstructured
		asked(s, func() {
			dry = s.Manifest(kind, "web", uses)
			require.NoError(t, s.Create(t.Context(), dry, client.DryRunAll))
		})
		w := observe.Workload{Kind: kind, Namespace: s.Namespace, Name: "web"}
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(dry), dry.DeepCopy())
		require.True(t, client.IgnoreNotFound(err) == nil && err != nil, "%s was created by a dry run", w)
		s.Workload(kind, "web", uses)
		assert.Equal(t, fixture.TemplateAnnotations(s.Get(w)), fixture.TemplateAnnotations(dry), "%s: the dry run is stamped as the write is", w)
		before := s.Get(w)

		mark, err := s.Installation.ControlPlane().Audit().Mark()
		require.NoError(t, err)
		wrong := s.Get(w)
		// A controller may write its status meanwhile; that conflict is not what this is about.
		wrong.SetResourceVersion("")
		wrong.SetAnnotations(map[string]string{fixture.ConfigMaps: "app", fixture.ConfigHash: "0123456789abcdef"})
		err = s.Update(t.Context(), wrong, client.DryRunAll)
		requireConflict(t, err, "a wrong digest in a dry run")
		var edited *unstructured.Unstructured
		asked(s, func() {
			edited = before.DeepCopy()
			edited.SetResourceVersion("")
			annotations := edited.GetAnnotations()
			annotations[fixture.ConfigMaps] = "app, more"
			edited.SetAnnotations(annotations)
			require.NoError(t, s.Update(t.Context(), edited, client.DryRunAll))
		})
		assert.NotEqual(t, fixture.TemplateAnnotations(before), fixture.TemplateAnnotations(edited), "an edited list is stamped")
		s.Reported()
		requests, err := s.Installation.ControlPlane().Audit().Since(s.Patiently(), mark)
		require.NoError(t, err)
		assert.Empty(t, requests.By(shared.Identity().User).In(s.Namespace).Writes(), "%s: a dry run has effects", w)
		after := s.Get(w)
		assert.Equal(t, before.GetGeneration(), after.GetGeneration(), "%s was changed by a dry run", w)
		assert.Equal(t, fixture.Ours(before), fixture.Ours(after), "%s was changed by a dry run", w)
		s.AssertChanges(w, 0, "nothing but dry runs")
	}
}

// Another manager (Argo CD, Flux) owns the workload and applies its manifest again and again.
func TestServerSideApplyByAnotherManager(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}}
	apply := func(kind string) *unstructured.Unstructured {
		t.Helper()
		manifest := s.Manifest(kind, "web", uses)
		require.NoError(t, s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("gitops")),
			"%s: applying again without force conflicts with what pod-reloader wrote", kind)
		return manifest
	}
	var workloads []observe.Workload
	for _, kind := range fixture.Kinds {
		asked(s, func() {
			require.NoError(t, client.IgnoreNotFound(s.Delete(t.Context(), s.Manifest(kind, "web", uses)))) // an attempt that was not
			apply(kind)
		})
		workloads = append(workloads, observe.Workload{Kind: kind, Namespace: s.Namespace, Name: "web"})
	}
	for round := range 2 {
		for _, w := range workloads {
			before := s.Get(w)
			require.NotEmpty(t, fixture.TemplateAnnotations(before)[fixture.ConfigHash], "%s is not stamped", w)
			for range 10 {
				apply(w.Kind)
			}
			after := s.Get(w)
			assert.Equal(t, fixture.Ours(before), fixture.Ours(after), "%s: managed annotations on the workload survive", w)
			assert.Equal(t, fixture.TemplateAnnotations(before), fixture.TemplateAnnotations(after), "%s: managed annotations on the template survive", w)
		}
		s.AwaitExactly(round, "applying the same manifest again restarts nothing", workloads...)
		if round == 0 {
			s.SetConfigMap("app", "key", "2")
			s.AwaitExactly(1, "the content changed, and then it is applied again", workloads...)
		}
	}
}

// The template of a Job cannot be changed: it is stamped when it is created and left alone from then on.
func TestJobIsStampedAtCreationOnly(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	job := &batchv1.Job{}
	manifest := s.Manifest("Job", "import", fixture.Uses{ConfigMaps: []string{"app"}})
	require.NoError(t, unstructured.SetNestedField(manifest.Object, true, "spec", "suspend"))
	s.CreatePromptly(manifest)
	key := types.NamespacedName{Namespace: s.Namespace, Name: "import"}
	require.NoError(t, s.Client.Get(t.Context(), key, job))
	require.NotEmpty(t, job.Spec.Template.Annotations[fixture.ConfigHash], "a Job is stamped at CREATE")
	require.Contains(t, job.Annotations[fixture.ConfigRecord], "configmap/app=")

	mark, err := s.Installation.ControlPlane().Audit().Mark()
	require.NoError(t, err)
	s.SetConfigMap("app", "key", "2")
	s.Merge(&batchv1.Job{}, "import", `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`)
	s.Reported()
	after := &batchv1.Job{}
	require.NoError(t, s.Client.Get(t.Context(), key, after))
	assert.Equal(t, job.Spec.Template.Annotations, after.Spec.Template.Annotations, "the Job keeps what it was started with")
	assert.Equal(t, job.UID, after.UID, "it runs on")
	requests, err := s.Installation.ControlPlane().Audit().Since(s.Patiently(), mark)
	require.NoError(t, err)
	assert.Empty(t, requests.By(shared.Identity().User).In(s.Namespace).Writes(), "no write of what cannot be changed is tried")
}

// A CronJob's template is that of its next run.
func TestJobOfCronJobCarriesTheStamp(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	cron := s.Manifest("CronJob", "report", fixture.Uses{ConfigMaps: []string{"app"}})
	cron.Object["spec"].(map[string]any)["schedule"] = "0 * * * *"
	cron.Object["spec"].(map[string]any)["suspend"] = true
	s.CreatePromptly(cron)
	w := observe.Workload{Kind: "CronJob", Namespace: s.Namespace, Name: "report"}
	first := fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	require.NotEmpty(t, first)
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "the next run is to have the new content", w)
	s.AwaitEvent(w, "Reloaded", "next scheduled run", "configmap/app modified")
	stamp := fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	require.NotEqual(t, first, stamp)

	// A run that is two hours overdue is started at once.
	overdue := `{"status":{"lastScheduleTime":"` + time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339) + `"}}`
	require.NoError(t, s.Client.Status().Patch(t.Context(), s.Get(w), client.RawPatch(types.MergePatchType, []byte(overdue))))
	s.MergeWorkload(w, `{"spec":{"suspend":false}}`)
	jobs := &batchv1.JobList{}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, s.List(t.Context(), jobs, client.InNamespace(s.Namespace)))
		require.NotEmpty(c, jobs.Items, "the CronJob controller has started no run")
	}, fixture.Patience, interval)
	for _, job := range jobs.Items {
		assert.True(t, metav1.IsControlledBy(&job, s.Get(w)), "%s is a run of the CronJob", job.Name)
		assert.Equal(t, stamp, job.Spec.Template.Annotations[fixture.ConfigHash], "%s carries the stamp of its CronJob", job.Name)
	}
	s.AwaitExactly(1, "running it restarts nothing", w)
}

// Where a new template does not replace the pods now, the Event says so.
func TestPendingRolloutsAreExplained(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind, spec, pending string
	}{
		"PausedDeployment":     {"Deployment", `{"paused":true}`, "rollout pending (paused)"},
		"OnDeleteStatefulSet":  {"StatefulSet", `{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}`, "rollout pending (OnDelete)"},
		"OnDeleteDaemonSet":    {"DaemonSet", `{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}`, "rollout pending (OnDelete)"},
		"PartitionStatefulSet": {"StatefulSet", `{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}`, "rollout pending (partition 2)"},
	}
	s := stage(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	workloads := map[string]observe.Workload{}
	for name, test := range tests {
		w := s.Workload(test.kind, lower(name), fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 3})
		s.MergeWorkload(w, `{"spec":`+test.spec+`}`)
		workloads[name] = w
	}
	plain := s.Deployment("plain", fixture.Uses{ConfigMaps: []string{"app"}})
	s.Settled()
	s.SetConfigMap("app", "key", "2")
	for name, test := range tests {
		s.AwaitChanges(workloads[name], 1, "stamped all the same")
		s.AwaitEvent(workloads[name], "Reloaded", "pod template updated, "+test.pending, "configmap/app modified")
	}
	event := s.AwaitEvent(plain, "Reloaded", "configmap/app modified")
	assert.NotContains(t, event.Note, "pending", "a Deployment that rolls out waits for nothing")
	s.AwaitExactly(1, "once", slices.Collect(maps.Values(workloads))...)
	s.AwaitRolledOut(workloads["PausedDeployment"])
	sets := s.Watcher.ReplicaSets(workloads["PausedDeployment"])
	assert.LessOrEqual(t, sets, 1, "a paused Deployment does not roll out")
}
