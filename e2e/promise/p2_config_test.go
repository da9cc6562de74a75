package promise_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/installation/scene"
	"github.com/pod-reloader/pod-reloader/e2e/observe"
)

// repetitions of everything that must not restart a pod.
const repetitions = 50

// Edits of config objects that leave their content alone.
func TestP2EditsBesideTheContentRestartNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		// edit does it for the n-th time, to the ConfigMap "app" and the Secret "db".
		edit func(s *scene.Scene, n int)
	}{
		"Label": {
			reason: "a label is no content",
			edit: func(s *scene.Scene, n int) {
				eachConfigObject(s, fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n))
			},
		},
		"Annotation": {
			reason: "an annotation is no content",
			edit: func(s *scene.Scene, n int) {
				eachConfigObject(s, fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n))
			},
		},
		"ManagedFields": {
			reason: "who owns a field is no content",
			edit:   applyAsSomebodyElse,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, workloads := dependents(t)
			for n := range repetitions {
				test.edit(s, n)
			}
			s.Settled()
			for _, w := range workloads {
				s.AssertChanges(w, 0, test.reason)
			}
			requireStillAwake(s, workloads)
		})
	}
}

// dependents are workloads of all kinds that depend on the ConfigMap "app" and the Secret "db".
func dependents(t *testing.T) (*scene.Scene, []observe.Workload) {
	t.Helper()
	s := scene.New(t, shared)
	s.ConfigMap("app", scene.Data{"key": "1"})
	s.Secret("db", scene.Data{"password": "1"})
	var workloads []observe.Workload
	for _, kind := range kinds {
		workloads = append(workloads, s.Workload(kind, "web", scene.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}}))
	}
	return s, workloads
}

// settle is how long configuration must be quiet in an installation as shipped, settleMax how long it may take to be.
const settle, settleMax = time.Second, 5 * time.Second

// An edit there and back within the settle window is no change. Where the machine stands still between the two for longer
// than the window, the edit is one, and the attempt shows nothing: then there is another.
func TestP2EditsThereAndBackRestartNothing(t *testing.T) {
	t.Parallel()
	for range 5 {
		s, workloads := dependents(t)
		inTime := true
		const atATime = 10
		for n := 0; n < repetitions && inTime; n += atATime {
			inTime = thereAndBack(s, atATime)
			s.Settled()
		}
		if !inTime {
			t.Log("an edit was not back in time")
			continue
		}
		for _, w := range workloads {
			s.AssertChanges(w, 0, "what the pods run with is what is there")
		}
		requireStillAwake(s, workloads)
		return
	}
	require.Fail(t, "no attempt in which every edit was back in time")
}

// thereAndBack makes some edits, and tells whether each was back before the loop could look.
func thereAndBack(s *scene.Scene, edits int) bool {
	s.Helper()
	first := time.Now()
	for n := range edits {
		began := time.Now()
		if n%2 == 0 {
			s.SetConfigMap("app", "extra", strconv.Itoa(n))
			s.Merge(&corev1.ConfigMap{}, "app", `{"data":{"extra":null}}`)
		} else {
			s.Merge(&corev1.Secret{}, "db", fmt.Sprintf(`{"stringData":{"extra":"%d"}}`, n))
			s.Merge(&corev1.Secret{}, "db", `{"data":{"extra":null}}`)
		}
		if time.Since(began) >= settle {
			return false
		}
	}
	return time.Since(first) < settleMax
}

func eachConfigObject(s *scene.Scene, patch string) {
	s.Helper()
	s.Merge(&corev1.ConfigMap{}, "app", patch)
	s.Merge(&corev1.Secret{}, "db", patch)
}

// applyAsSomebodyElse applies the same content on the server's side under a name of its own, which adds an owner.
func applyAsSomebodyElse(s *scene.Scene, n int) {
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
func requireStillAwake(s *scene.Scene, workloads []observe.Workload) {
	s.Helper()
	s.SetConfigMap("app", "key", "changed")
	for _, w := range workloads {
		s.AwaitChanges(w, 1, "the content has changed at last")
	}
}

func TestP2RecreationWithEqualContentRestartsNothing(t *testing.T) {
	t.Parallel()
	s := scene.New(t, shared)
	const objects = 10
	workloads := map[observe.Workload]string{}
	for n := range objects {
		name := "c" + strconv.Itoa(n)
		s.ConfigMap(name, scene.Data{"key": "1"})
		s.Secret(name, scene.Data{"key": "1"})
		uses := scene.Uses{ConfigMaps: []string{name}, Secrets: []string{name}, Unread: n%2 == 0}
		workloads[s.Workload(kinds[n%len(kinds)], name, uses)] = name
	}
	for range repetitions / objects {
		for _, name := range workloads {
			recreate(s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: scene.Data{"key": "1"}})
			recreate(s, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"key": []byte("1")}})
		}
	}
	s.Settled()
	for w, name := range workloads {
		s.AssertChanges(w, 0, "its objects were deleted and created again with equal content, which a backup tool does")
		s.SetSecret(name, "key", "2")
		s.AwaitChanges(w, 1, "the content has changed at last")
	}
}

// recreate deletes an object and creates it anew: it gets another UID and resourceVersion.
func recreate(s *scene.Scene, object client.Object) {
	s.Helper()
	object.SetNamespace(s.Namespace)
	require.NoError(s, s.Delete(s.Context(), object))
	object.SetResourceVersion("")
	object.SetUID("")
	require.NoError(s, s.Create(s.Context(), object))
}
