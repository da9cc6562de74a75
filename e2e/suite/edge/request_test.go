package edge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
)

// A request for a reload of a workload that asks for nothing is taken away. The user is warned, and the client library does
// not call it success.
func TestPurgedRequestIsNoSuccess(t *testing.T) {
	t.Parallel()
	s := stage(t)
	user, heard := s.Warned()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	excluded := map[string]string{"pod-reloader.cs.sap.com/ignored": "true"}
	for name, uses := range map[string]fixture.Uses{
		"no-lists": {},
		"excluded": {ConfigMaps: []string{"app"}, Labels: excluded},
	} {
		w := s.Deployment(name, uses)
		heard.Take()
		result, err := poke.Do(t.Context(), user.Client, poke.Request{
			GroupVersionKind: observe.KindNamed(w.Kind).GroupVersionKind(), Namespace: w.Namespace, Name: w.Name, Digest: strings.Repeat("0", 64),
		})
		require.NoError(t, err, name)
		assert.Equal(t, poke.Purged, result.Outcome, name)
		assert.Contains(t, strings.Join(heard.Take(), " "), "removed this reload request", name)
		s.AwaitExactly(0, "a purge restarts nothing", w)
	}
}

// The pods have started with a Secret that came after the stamp, and that is gone now: the digest on the pod template is that of what is
// stored, and says nothing of what they have.
func TestPurgedRequestOfAHeldReloadIsNoSuccess(t *testing.T) {
	t.Parallel()
	s := stage(t)
	w := s.Deployment("web", fixture.Uses{Secrets: []string{"db"}})
	secret := s.Secret("db", fixture.Data{"key": "1"})
	s.AwaitAdopted(w, "secret/db")
	require.NoError(t, s.Delete(t.Context(), secret))
	result, err := poke.Do(t.Context(), s.Client, poke.Request{
		GroupVersionKind: observe.KindNamed(w.Kind).GroupVersionKind(), Namespace: w.Namespace, Name: w.Name,
		Digest: fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash],
	})
	require.NoError(t, err)
	assert.Equal(t, poke.Purged, result.Outcome)
	s.AwaitExactly(0, "a reload that is held restarts nothing", w)
}

// A client asks for reloads by server-side apply. The annotation that the loop has set for its own request, and that was
// purged, has no owner: no force is needed.
func TestRequestByServerSideApplyAfterAReload(t *testing.T) {
	t.Parallel()
	s := stage(t)
	app := s.ConfigMap("app", fixture.Data{"key": "1"})
	workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app"}})
	for _, w := range workloads {
		ask(s, w, fixture.SAPDigest(app))
	}
	s.Merge(app, "app", `{"data":{"key":"2"}}`)
	s.AwaitExactly(1, "the loop reloads it, by a request of its own", workloads...)
	for _, w := range workloads {
		for range 2 {
			ask(s, w, fixture.SAPDigest(app))
			assert.NotContains(t, s.Get(w).GetAnnotations(), fixture.ConfigHash, "%s: the request is taken away", w)
		}
	}
	s.AwaitExactly(1, "nothing more was due", workloads...)
}

// ask requests a reload by server-side apply, without force.
func ask(s *fixture.Fixture, of observe.Workload, digest string) {
	s.Helper()
	object := fixture.Object(of)
	object.SetAnnotations(map[string]string{fixture.ConfigHash: digest})
	require.NoError(s, s.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("a-client")), of)
}

// Names that a user could take for the annotations' are reported, on each kind: by a warning, and by an Event.
func TestMisspelledAnnotationsAreReported(t *testing.T) {
	t.Parallel()
	s := stage(t)
	user, heard := s.Warned()
	advice := map[observe.Workload]string{}
	for misspelled, right := range map[string]string{
		"config-maps": "configmaps", "configMaps": "configmaps", "configmap": "configmaps", "secret": "secrets", "Secrets": "secrets",
	} {
		uses := fixture.Uses{Annotations: map[string]string{"pod-reloader.cs.sap.com/" + misspelled: "app"}}
		for _, kind := range fixture.Kinds {
			w := user.Workload(kind, fmt.Sprintf("web-%d", len(advice)), uses)
			advice[w] = `use "pod-reloader.cs.sap.com/` + right + `"`
			assert.Contains(t, strings.Join(heard.Take(), " "), advice[w], "%s on %s", misspelled, w)
		}
	}
	for w, text := range advice {
		s.AwaitEvent(w, "InvalidAnnotation", text)
	}
}
