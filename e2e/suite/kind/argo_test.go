package kind_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// argo is a namespace whose observer sees Rollouts as well.
func argo(t *testing.T) *fixture.Fixture {
	t.Helper()
	cp := shared.ControlPlane()
	s := &fixture.Fixture{TB: t, Client: cp.Client(), Namespace: cp.Namespace(t), Installation: shared}
	t.Cleanup(func() { shared.Explain(t, s.Namespace); explainArgo(t, s.Namespace) })
	s.Watcher = observe.New(t, cp.Admin(), s.Namespace, observe.Kind{
		Name: "Rollout", Resource: rolloutKind.GroupVersion().WithResource("rollouts"), Template: "spec.template",
	})
	return s
}

// explainArgo shows the end of what the controller of Argo Rollouts says of a namespace, where the test has failed, and the
// end of all that it says if it has ended.
func explainArgo(t *testing.T, namespace string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	log, err := os.ReadFile(argoController.LogPath())
	require.NoError(t, err)
	lines, about := strings.Split(string(log), "\n"), namespace
	select {
	case <-argoController.Exited():
		about = "" // every line
	default:
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, about) })
	t.Logf("the end of the log of Argo Rollouts:\n%s", strings.Join(lines[max(0, len(lines)-50):], "\n"))
}

// rollout creates one with two pods that depend on configmap/app, and waits until they run. The controller
// adds defaults to a new template: it returns how many changes there were so far.
func rollout(
	s *fixture.Fixture, name string, annotations map[string]string, further map[string]any,
) (w observe.Workload, changes int) {
	s.Helper()
	manifest := s.Manifest("Deployment", name, fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 2})
	manifest.SetGroupVersionKind(rolloutKind)
	manifest.SetAnnotations(annotations)
	spec := manifest.Object["spec"].(map[string]any)
	spec["strategy"] = map[string]any{"canary": map[string]any{}}
	for field, value := range further {
		spec[field] = value
	}
	s.CreatePromptly(manifest)
	w = observe.Workload{Kind: "Rollout", Namespace: s.Namespace, Name: name}
	awaitHealthy(s, w)
	s.Settled()
	return w, len(s.Watcher.Changes(w))
}

// argoObject is a Rollout as it is stored.
func argoObject(s *fixture.Fixture, w observe.Workload) *unstructured.Unstructured {
	s.Helper()
	object := newRollout()
	require.NoError(s, s.Client.Get(s.Context(), types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, object))
	return object
}

// patchArgo applies a merge patch to a Rollout.
func patchArgo(s *fixture.Fixture, w observe.Workload, patch string) {
	s.Helper()
	s.Merge(newRollout(), w.Name, patch)
}

// awaitPhase waits until the controller has seen the newest version of a Rollout and reports a phase.
func awaitPhase(s *fixture.Fixture, w observe.Workload, want string) {
	s.Helper()
	s.Await(w.String()+" to be "+want, func() error {
		object := argoObject(s, w)
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		seen, _, _ := unstructured.NestedString(object.Object, "status", "observedGeneration")
		if phase != want || seen != strconv.FormatInt(object.GetGeneration(), 10) {
			return fmt.Errorf("it is %q at generation %s of %d", phase, seen, object.GetGeneration())
		}
		return nil
	})
}

func awaitHealthy(s *fixture.Fixture, w observe.Workload) { s.Helper(); awaitPhase(s, w, "Healthy") }

// sets are the ReplicaSets of a Rollout.
func sets(s *fixture.Fixture, w observe.Workload) []appsv1.ReplicaSet {
	s.Helper()
	uid, all := argoObject(s, w).GetUID(), &appsv1.ReplicaSetList{}
	require.NoError(s, s.List(s.Context(), all, client.InNamespace(s.Namespace)))
	return slices.DeleteFunc(all.Items, func(set appsv1.ReplicaSet) bool {
		owner := metav1.GetControllerOf(&set)
		return owner == nil || owner.UID != uid
	})
}

// pods are those of a Rollout that are not being deleted.
func pods(s *fixture.Fixture, w observe.Workload) map[types.UID]bool {
	s.Helper()
	all, uids := &corev1.PodList{}, map[types.UID]bool{}
	require.NoError(s, s.List(s.Context(), all, client.InNamespace(s.Namespace)))
	owners := map[types.UID]bool{}
	for _, set := range sets(s, w) {
		owners[set.UID] = true
	}
	for _, pod := range all.Items {
		if owner := metav1.GetControllerOf(&pod); pod.DeletionTimestamp == nil && owner != nil && owners[owner.UID] {
			uids[pod.UID] = true
		}
	}
	return uids
}

// awaitNewPods waits until a Rollout has two pods, and none of before.
func awaitNewPods(s *fixture.Fixture, w observe.Workload, before map[types.UID]bool) {
	s.Helper()
	s.Await("new pods of "+w.String(), func() error {
		now := pods(s, w)
		for uid := range before {
			if now[uid] {
				return fmt.Errorf("pod %s of before is there", uid)
			}
		}
		if len(now) != 2 {
			return fmt.Errorf("there are %d pods", len(now))
		}
		return nil
	})
}

func TestRolloutIsStamped(t *testing.T) {
	t.Parallel()
	s := argo(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, changes := rollout(s, "web", map[string]string{auto: "true"}, nil)
	for n := 1; n <= 3; n++ {
		before := pods(s, w)
		s.SetConfigMap("app", "key", strconv.Itoa(n+1))
		s.AwaitChanges(w, changes+n, "its configuration has changed")
		awaitNewPods(s, w, before)
		awaitHealthy(s, w)
		assert.Len(t, sets(s, w), n+1, "each reload is one rollout")
	}
	s.AwaitEvent(w, "Reloaded", "pod template updated: configmap/app modified")
	s.AwaitExactly(changes+3, "and no more", w)
}

func TestRolloutIsRestarted(t *testing.T) {
	t.Parallel()
	s := argo(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, changes := rollout(s, "web", map[string]string{auto: "true", "reloader.stakater.com/rollout-strategy": "restart"}, nil)
	for n, content := range []string{"2", "1"} {
		before := pods(s, w)
		s.SetConfigMap("app", "key", content)
		awaitNewPods(s, w, before)
		s.AwaitEvent(w, "Reloaded", "restarted: configmap/app modified")
		awaitHealthy(s, w)
		s.Settled()
		settled := pods(s, w)
		at, _, _ := unstructured.NestedString(argoObject(s, w).Object, "spec", "restartAt")
		_, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		s.Merge(&corev1.ConfigMap{}, "app", `{"metadata":{"labels":{"round":"`+strconv.Itoa(n)+`"}}}`)
		s.Settled()
		assert.Equal(t, settled, pods(s, w), "one change is one restart")
		again, _, _ := unstructured.NestedString(argoObject(s, w).Object, "spec", "restartAt")
		assert.Equal(t, at, again)
	}
	s.RequireChanges(w, changes, "the template stays as it is")
	assert.Len(t, sets(s, w), 1)
}

// A Rollout from before its annotations has no stamp, and a restart does not need one. The first release after it stamps the template
// with the configuration that its pods start with.
func TestRolloutThatWasNeverStampedIsRestarted(t *testing.T) {
	t.Parallel()
	s := argo(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, changes := rollout(s, "web", nil, nil)
	patchArgo(s, w, `{"metadata":{"annotations":{"`+auto+`":"true","reloader.stakater.com/rollout-strategy":"restart"}}}`)
	s.Await("the adoption", func() error {
		if text := argoObject(s, w).GetAnnotations()[fixture.ConfigRecord]; !strings.Contains(text, ":configmap/app~") {
			return fmt.Errorf("the Record is %q", text)
		}
		return nil
	})
	for _, content := range []string{"2", "3"} {
		before := pods(s, w)
		s.SetConfigMap("app", "key", content)
		awaitNewPods(s, w, before)
		s.AwaitEvent(w, "Reloaded", "restarted: configmap/app modified")
		awaitHealthy(s, w)
		s.AwaitExactly(changes, "the template stays as it is", w)
		assert.Empty(t, fixture.TemplateAnnotations(argoObject(s, w))[fixture.ConfigHash])
	}
	s.JSONPatch(newRollout(), w.Name, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/app:2"}]`)
	awaitHealthy(s, w)
	s.AwaitExactly(changes+1, "the release, and nothing after it", w)
}

// A Rollout whose pods are those of another workload follows its template.
func TestRolloutOfAnotherWorkload(t *testing.T) {
	t.Parallel()
	s := argo(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	deployment := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Annotations: map[string]string{fixture.ConfigMaps: "", auto: "true"}})
	s.AwaitAdopted(deployment, "configmap/app")
	object := newRollout()
	object.Object["spec"] = map[string]any{
		"replicas": int64(2), "strategy": map[string]any{"canary": map[string]any{}},
		"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
	}
	object.SetNamespace(s.Namespace)
	object.SetName("web")
	require.NoError(t, s.Create(t.Context(), object))
	w := observe.Workload{Kind: "Rollout", Namespace: s.Namespace, Name: "web"}
	awaitHealthy(s, w)
	before := pods(s, w)
	require.Len(t, before, 2)

	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(deployment, 1, "its configuration has changed")
	awaitNewPods(s, w, before)
	s.AwaitExactly(1, "and no more", deployment)

	patchArgo(s, w, `{"metadata":{"annotations":{"`+auto+`":"true"}}}`)
	s.AwaitEvent(w, "InvalidAnnotation", "spec.workloadRef")
}

// undo brings the template of a ReplicaSet back, as `kubectl argo rollouts undo` does: the template alone, without the label of the
// controller.
func undo(s *fixture.Fixture, w observe.Workload, image string) {
	s.Helper()
	for _, set := range sets(s, w) {
		if set.Spec.Template.Spec.Containers[0].Image != image {
			continue
		}
		template := set.Spec.Template.DeepCopy()
		delete(template.Labels, "rollouts-pod-template-hash")
		template.CreationTimestamp = metav1.Time{}
		body, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": template}})
		require.NoError(s, err)
		s.JSONPatch(newRollout(), w.Name, string(body))
		return
	}
	require.Fail(s, "no ReplicaSet has the image "+image)
}

// A release stops half-way and is aborted and undone; meanwhile the configuration is only labelled, or the digest key is rotated. Undo
// brings the template only, and all pods of the version before survive.
func TestRolloutUndoKeepsPods(t *testing.T) {
	t.Parallel()
	for name, happen := range map[string]func(s *fixture.Fixture){
		"Label": func(s *fixture.Fixture) {
			s.Merge(&corev1.ConfigMap{}, "app", `{"metadata":{"labels":{"touched":"true"}}}`)
		},
		"KeyRotated": func(s *fixture.Fixture) { s.RotateKey("0002") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undoKeepsPods(t, happen)
		})
	}
}

func undoKeepsPods(t *testing.T, happen func(s *fixture.Fixture)) {
	t.Helper()
	s := argo(t)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, changes := rollout(s, "web", map[string]string{auto: "true"}, map[string]any{"strategy": map[string]any{"canary": map[string]any{
		"steps": []any{map[string]any{"setWeight": int64(50)}, map[string]any{"pause": map[string]any{}}},
	}}})
	before := pods(s, w)
	require.Len(t, before, 2)
	release := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/app:2"}]`
	s.JSONPatch(newRollout(), w.Name, release)
	awaitPhase(s, w, "Paused")
	halfway := pods(s, w)
	maps.DeleteFunc(before, func(uid types.UID, _ bool) bool { return !halfway[uid] })
	require.NotEmpty(t, before, "pods of both versions run")
	happen(s)

	object := argoObject(s, w)
	require.NoError(t, s.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"status":{"abort":true}}`))))
	awaitPhase(s, w, "Degraded")
	undo(s, w, "example.com/app:1")
	awaitHealthy(s, w)
	s.Settled()
	assert.Len(t, sets(s, w), 2, "the ReplicaSet of before is found again")
	after := pods(s, w)
	for uid := range before {
		assert.Contains(t, after, uid, "a pod of the version before survives abort and undo")
	}
	s.RequireChanges(w, changes+2, "the release and its undo")

	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(changes+3, "a change of the configuration is found after the undo", w)
}
