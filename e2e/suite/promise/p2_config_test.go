package promise_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// repetitions of everything that must not restart a pod.
const repetitions = 50

// Edits of config objects that leave their content alone. SAP's config-hash is a digest over names, UIDs and
// resourceVersions: there each of them restarts the pods, and so does a restore.
func TestP2EditsBesideTheContentRestartNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		// edit does it for the n-th time, to the ConfigMap "app" and the Secret "db".
		edit func(s *fixture.Fixture, n int)
	}{
		"Label": {
			reason: "a label is no content",
			edit: func(s *fixture.Fixture, n int) {
				eachConfigObject(s, fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n))
			},
		},
		"Annotation": {
			reason: "an annotation is no content",
			edit: func(s *fixture.Fixture, n int) {
				eachConfigObject(s, fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n))
			},
		},
		"ManagedFields": {
			reason: "who owns a field is no content",
			edit:   applyAsAnotherManager,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fixture.New(t, shared)
			workloads := dependents(s)
			ran := awaitPods(s, workloads)
			for n := range repetitions {
				test.edit(s, n)
			}
			s.AwaitExactly(0, test.reason, workloads...)
			assert.ElementsMatch(t, ran, podUIDs(s), "the same pods: %s", test.reason)
			requireStillAwake(s, workloads)
		})
	}
}

// dependents are workloads of all kinds that depend on the ConfigMap "app" and the Secret "db".
func dependents(s *fixture.Fixture) []observe.Workload {
	s.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"password": "1"})
	var workloads []observe.Workload
	for _, kind := range fixture.Kinds {
		workloads = append(workloads, s.Workload(kind, "web", usesBoth()))
	}
	return workloads
}

// awaitPods waits until the pods of some workloads run, and no others, and returns all pods of the namespace.
func awaitPods(s *fixture.Fixture, workloads []observe.Workload) []types.UID {
	s.Helper()
	for _, w := range workloads {
		if w.Kind != "CronJob" {
			s.AwaitWorkload(w, "its pods, all of them of the present template and ready", rolledOut)
		}
	}
	return podUIDs(s)
}

// rolledOut reports whether all pods of a workload are of its present template, and ready.
func rolledOut(o *unstructured.Unstructured) bool {
	number := func(section, field string) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, section, field)
		return n
	}
	wanted, counts := number("spec", "replicas"), []string{"replicas", "updatedReplicas", "readyReplicas"}
	if o.GetKind() == "DaemonSet" {
		wanted, counts = number("status", "desiredNumberScheduled"), []string{"currentNumberScheduled", "updatedNumberScheduled", "numberReady"}
	}
	return wanted > 0 && number("status", "observedGeneration") == o.GetGeneration() &&
		!slices.ContainsFunc(counts, func(field string) bool { return number("status", field) != wanted })
}

// podUIDs are those of the pods of a namespace that are not being deleted.
func podUIDs(s *fixture.Fixture) []types.UID {
	s.Helper()
	var uids []types.UID
	for _, some := range podUIDsByApp(s) {
		uids = append(uids, some...)
	}
	return uids
}

// podUIDsByApp are podUIDs by the label app of the pods.
func podUIDsByApp(s *fixture.Fixture) map[string][]types.UID {
	s.Helper()
	list := &corev1.PodList{}
	require.NoError(s, s.List(s.Context(), list, client.InNamespace(s.Namespace)))
	uids := map[string][]types.UID{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			app := pod.Labels["app"]
			uids[app] = append(uids[app], pod.UID)
		}
	}
	return uids
}

// An edit there and back within the settle window is no change.
func TestP2EditsThereAndBackRestartNothing(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	workloads := dependents(s)
	ran, expected := awaitPods(s, workloads), map[observe.Workload]int{}
	enoughAtATime(t, repetitions, func(first, times int) bool {
		prompt := thereAndBack(s, first, times)
		s.Settled()
		for _, w := range workloads {
			if prompt {
				s.AssertChanges(w, expected[w], "what the pods run with is what is there")
			}
			expected[w] = len(s.Watcher.Changes(w))
		}
		if prompt {
			assert.ElementsMatch(t, ran, podUIDs(s), "the same pods")
		} else {
			ran = awaitPods(s, workloads)
		}
		return prompt
	})
	stillAwake(s, workloads, expected)
}

// thereAndBack makes some edits, numbered from first, and reports whether each was back before the loop could look.
func thereAndBack(s *fixture.Fixture, first, edits int) bool {
	s.Helper()
	each := true
	return within(settleMax, func() {
		for n := first; n < first+edits; n++ {
			each = within(settle, func() {
				if n%2 == 0 {
					s.SetConfigMap("app", "extra", strconv.Itoa(n))
					s.Merge(&corev1.ConfigMap{}, "app", `{"data":{"extra":null}}`)
				} else {
					s.Merge(&corev1.Secret{}, "db", fmt.Sprintf(`{"stringData":{"extra":"%d"}}`, n))
					s.Merge(&corev1.Secret{}, "db", `{"data":{"extra":null}}`)
				}
			}) && each
		}
	}) && each
}

func eachConfigObject(s *fixture.Fixture, patch string) {
	s.Helper()
	s.Merge(&corev1.ConfigMap{}, "app", patch)
	s.Merge(&corev1.Secret{}, "db", patch)
}

// applyAsAnotherManager applies the same content on the server's side under a name of its own, which adds an owner.
func applyAsAnotherManager(s *fixture.Fixture, n int) {
	s.Helper()
	for kind, content := range map[string]map[string]any{
		"ConfigMap": {"data": map[string]any{"key": "1"}},
		"Secret":    {"stringData": map[string]any{"password": "1"}},
	} {
		object := &unstructured.Unstructured{Object: content}
		object.SetAPIVersion("v1")
		object.SetKind(kind)
		object.SetNamespace(s.Namespace)
		object.SetName(map[string]string{"ConfigMap": "app", "Secret": "db"}[kind])
		require.NoError(s, s.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner("owner-"+strconv.Itoa(n)), client.ForceOwnership))
	}
}

// requireStillAwake shows that the peace before was no sleep: the next change of the content restarts each once.
func requireStillAwake(s *fixture.Fixture, workloads []observe.Workload) {
	s.Helper()
	stillAwake(s, workloads, nil)
}

// stillAwake is requireStillAwake for workloads that have changed before.
func stillAwake(s *fixture.Fixture, workloads []observe.Workload, before map[observe.Workload]int) {
	s.Helper()
	s.SetConfigMap("app", "key", "changed")
	for _, w := range workloads {
		s.AwaitChanges(w, before[w]+1, "the content has changed at last")
	}
	s.Settled()
	for _, w := range workloads {
		s.RequireChanges(w, before[w]+1, "once")
	}
}

func TestP2RecreationWithEqualContentRestartsNothing(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	workloads := recreationDependents(s)
	awaitPods(s, workloads)
	ran, expected := podUIDsByApp(s), map[observe.Workload]int{}
	enough(t, repetitions, func() int {
		prompt := map[observe.Workload]bool{}
		for _, w := range workloads {
			prompt[w] = recreateBoth(s, w.Name)
		}
		s.Settled()
		late := slices.DeleteFunc(slices.Clone(workloads), func(w observe.Workload) bool { return prompt[w] })
		awaitPods(s, late)
		now := podUIDsByApp(s)
		for _, w := range workloads {
			if prompt[w] {
				s.AssertChanges(w, expected[w], "its objects were deleted and created again with equal content, which a backup tool does")
				assert.ElementsMatch(t, ran[w.Name], now[w.Name], "%s: the same pods", w)
			}
			expected[w] = len(s.Watcher.Changes(w))
		}
		ran = now
		return len(workloads) - len(late)
	})
	for _, w := range workloads {
		s.SetSecret(w.Name, "key", "2")
		s.AwaitChanges(w, expected[w]+1, "the content has changed at last")
	}
}

// recreationDependents are workloads that each depend on a ConfigMap and a Secret of their name. Half of them do not require these.
func recreationDependents(s *fixture.Fixture) []observe.Workload {
	s.Helper()
	const objects = 10
	var workloads []observe.Workload
	for n := range objects {
		name := "c" + strconv.Itoa(n)
		s.ConfigMap(name, fixture.Data{"key": "1"})
		s.Secret(name, fixture.Data{"key": "1"})
		uses := fixture.Uses{ConfigMaps: []string{name}, Secrets: []string{name}, Unread: n%2 == 0, Replicas: 1}
		workloads = append(workloads, s.Workload(fixture.Kinds[n%len(fixture.Kinds)], name, uses))
	}
	return workloads
}

// recreateBoth recreates a ConfigMap and a Secret, and reports whether each was back within the settle time.
func recreateBoth(s *fixture.Fixture, name string) bool {
	s.Helper()
	prompt := within(settle, func() {
		recreate(s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: fixture.Data{"key": "1"}})
	})
	return within(settle, func() {
		recreate(s, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"key": []byte("1")}})
	}) && prompt
}

// recreate deletes an object and creates it anew: it gets another UID and resourceVersion.
func recreate(s *fixture.Fixture, object client.Object) {
	s.Helper()
	object.SetNamespace(s.Namespace)
	require.NoError(s, s.Delete(s.Context(), object))
	object.SetResourceVersion("")
	object.SetUID("")
	require.NoError(s, s.Create(s.Context(), object))
}
