package sequence_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// Another mutating webhook, which the API server calls after ours, touches every workload; so ours is called again, with
// its own patch already in the object, and must not take that for a user's edit.
func TestSecondWebhookDoesNotUndoAReload(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]func(*admissionv1.AdmissionRequest) string{
		"the webhook touches the metadata": func(request *admissionv1.AdmissionRequest) string {
			return `[{"op":"add","path":"/metadata/labels","value":{"touched":"` + string(request.UID)[:8] + `"}}]`
		},
		"the webhook removes all annotations of pods": func(*admissionv1.AdmissionRequest) string {
			return `[{"op":"add","path":"/spec/template/metadata/annotations","value":{}}]`
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reloadBesideAnother(t, patch)
		})
	}
}

func reloadBesideAnother(t *testing.T, patch func(*admissionv1.AdmissionRequest) string) {
	t.Helper()
	s := fixture.New(t, shared)
	calls := second(s, patch)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	for n := range 5 {
		before := calls.Load()
		s.SetConfigMap("app", "key", string(rune('2'+n)))
		s.AwaitExactly(n+1, "the content changed", w)
		assert.Greater(t, calls.Load(), before, "the second webhook took part in the reload")
	}
	stored := s.Get(w)
	assert.NotContains(t, stored.GetAnnotations(), fixture.ConfigHash, "no dummy is left")
	assert.Contains(t, stored.GetAnnotations(), fixture.LastReload)
}

// Another mutating webhook adds a field to the template. A write that lacks it looks like a release to our first pass, and
// like nothing at all to the second.
func TestLaterWebhooksFieldIsNoRelease(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		create func(*fixture.Fixture) (observe.Workload, fixture.Uses)
		// holds says that the deletion of an object holds the reload; by Reloader's annotations it is none.
		holds bool
	}{
		"Stamped":      {stampedAtCreation, true},
		"NeverStamped": {neverStamped, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			putsBesideAnother(t, tc.create, tc.holds)
		})
	}
}

// stampedAtCreation creates a Deployment that asks for reloads from the beginning.
func stampedAtCreation(s *fixture.Fixture) (observe.Workload, fixture.Uses) {
	s.Helper()
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	return s.Deployment("web", uses), uses
}

// neverStamped creates a Deployment that asks for reloads later, by an annotation that does not change its template.
func neverStamped(s *fixture.Fixture) (observe.Workload, fixture.Uses) {
	s.Helper()
	const auto = "reloader.stakater.com/auto"
	manifest := s.Manifest("Deployment", "web", fixture.Uses{ConfigMaps: []string{"app"}})
	manifest.SetAnnotations(nil)
	s.CreatePromptly(manifest)
	w := observe.Deployment(s.Namespace, "web")
	s.MergeWorkload(w, `{"metadata":{"annotations":{"`+auto+`":"true"}}}`)
	s.AwaitAdopted(w, "configmap/app")
	require.NotContains(s, fixture.TemplateAnnotations(s.Get(w)), fixture.ConfigHash, "its template has no stamp")
	return w, fixture.Uses{ConfigMaps: []string{"app"}, Annotations: map[string]string{fixture.ConfigMaps: "", auto: "true"}}
}

// putsBesideAnother replaces a Deployment by its manifest, which lacks the field of the other webhook and our annotations.
func putsBesideAnother(t *testing.T, create func(*fixture.Fixture) (observe.Workload, fixture.Uses), holds bool) {
	t.Helper()
	s := fixture.New(t, shared)
	second(s, func(*admissionv1.AdmissionRequest) string {
		return `[{"op":"add","path":"/spec/template/spec/priorityClassName","value":"system-node-critical"}]`
	})
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w, uses := create(s)
	put := func(why string) {
		t.Helper()
		for range 3 {
			require.NoError(t, s.Update(t.Context(), s.Manifest(w.Kind, w.Name, uses)))
		}
		s.AwaitExactly(0, why, w)
	}
	put("a PUT that changes nothing")
	if holds {
		require.NoError(t, s.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "app"}}))
		s.AwaitEvent(w, "ReloadHeld", "configmap/app")
		put("the same, while a reload is held")
		s.ConfigMap("app", fixture.Data{"key": "2"})
	} else {
		s.SetConfigMap("app", "key", "2")
	}
	s.AwaitExactly(1, "its content is another one", w)
}

// second registers a mutating webhook that answers with a patch.
func second(s *fixture.Fixture, patch func(*admissionv1.AdmissionRequest) string) (calls *atomic.Int64) {
	s.Helper()
	return fixture.Webhook{
		Mutating: true,
		Patient:  true,
		Answer:   func(_ context.Context, request *admissionv1.AdmissionRequest) string { return patch(request) },
	}.Register(s)
}
