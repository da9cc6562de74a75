package edge_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// An installation for one namespace, with no permission anywhere else.
func scopeOfNamespaces(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		KeepRunning: true, LongLease: true, Components: []string{"namespaced"},
	})
	inside, outside := fixture.In(t, in, "my-app"), fixture.New(t, in)
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	scopes(t, in, inside, uses, outside, uses)
	inside.AssertExplained(outside, "--namespaces does not name "+outside.Namespace, "--namespaces=my-app")
	requests, err := cp.Audit().All(t.Context())
	require.NoError(t, err)
	assert.Empty(t, requests.By(in.Identity().User).In(outside.Namespace), "it asks for nothing in a namespace that is not its")
}

// Namespaces by their labels.
func scopeOfNamespaceSelector(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		KeepRunning: true, LongLease: true, Components: []string{"namespace-selector"},
	})
	inside, outside := fixture.New(t, in), fixture.New(t, in, map[string]string{"pod-reloader": "disabled"})
	uses := fixture.Uses{ConfigMaps: []string{"app"}}
	scopes(t, in, inside, uses, outside, uses)
	inside.AssertExplained(outside, "the labels of the namespace do not match --namespace-selector", "--namespace-selector=pod-reloader=enabled")

	// Any pod that reaches the port can ask about any namespace, of the leader and of a standby.
	for _, replica := range in.Replicas() {
		for _, s := range []*fixture.Fixture{inside, outside} {
			review := strings.ReplaceAll(strings.ReplaceAll(goodReview, "NAMESPACE", s.Namespace), "1e400", "1e4")
			code, answer := s.Review(replica, []byte(review))
			require.Equal(t, http.StatusOK, code, string(answer))
			assert.Equal(t, s == inside, bytes.Contains(answer, []byte(`"patch":`)), "%s: %s", s.Namespace, answer)
		}
	}
	requests, err := cp.Audit().All(t.Context())
	require.NoError(t, err)
	assert.Empty(t, requests.By(in.Identity().User).In(outside.Namespace), "nothing is read there")
}

// Workloads by their labels.
func scopeOfObjectSelector(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{Args: []string{"--object-selector=tier!=db,tier notin (cache)"}})
	s := fixture.New(t, in)
	selected := fixture.Uses{ConfigMaps: []string{"app"}, Labels: map[string]string{"tier": "web"}}
	for _, tier := range []string{"db", "cache"} {
		outside := fixture.New(t, in)
		scopes(t, in, s, selected, outside, fixture.Uses{ConfigMaps: []string{"app"}, Labels: map[string]string{"tier": tier}})
		s.AssertExplained(outside, "its labels do not match --object-selector", "--object-selector=tier!=db,tier notin (cache)")
		s = fixture.New(t, in)
	}

	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("leaves", selected)
	require.Contains(t, fixture.TemplateAnnotations(s.Get(w)), fixture.ConfigHash)
	leaving := fixture.Uses{ConfigMaps: []string{"app"}, Labels: map[string]string{"tier": "db"}}
	require.NoError(t, s.Update(t.Context(), s.Manifest(w.Kind, w.Name, leaving)))
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "a PUT without the hash takes it out of the scope: out of scope nothing is patched, and nothing is reloaded", w)
}

// The labels by which a user takes a workload out, on the shared installation. SAP's webhook leaves such workloads out, but
// its loop writes its dummy annotation all the same, which no webhook removes.
func TestScopeOfLabels(t *testing.T) {
	t.Parallel()
	for _, label := range []string{"ignored", "disabled"} {
		labels := map[string]string{"pod-reloader.cs.sap.com/" + label: "true"}
		scopes(t, nil, stage(t), fixture.Uses{ConfigMaps: []string{"app"}},
			stage(t), fixture.Uses{ConfigMaps: []string{"app"}, Labels: labels})
	}
}

// scopes asserts that workloads inside are reloaded and those outside are not changed: neither by the webhook, when they
// are created and updated, nor by the loop, when their configuration changes.
func scopes(t *testing.T, own *installation.Installation, inside *fixture.Fixture, selected fixture.Uses, outside *fixture.Fixture, excluded fixture.Uses) {
	t.Helper()
	in := inside.Installation
	mark, err := in.ControlPlane().Audit().Mark()
	require.NoError(t, err)
	for _, s := range []*fixture.Fixture{inside, outside} {
		s.ConfigMap("app", fixture.Data{"key": "1"})
	}
	yes := inside.EveryKind("web", selected)
	no := outside.EveryKind("web", excluded)
	for n, value := range []string{"2", "3"} {
		outside.SetConfigMap("app", "key", value)
		inside.SetConfigMap("app", "key", value)
		inside.AwaitExactly(n+1, "it is in scope", yes...)
		for _, w := range no {
			outside.MergeWorkload(w, `{"metadata":{"labels":{"n":"`+value+`"}}}`)
		}
	}
	image(outside, no)
	outside.Reported()
	for _, w := range no {
		outside.AssertChanges(w, 1, "out of scope, only its user changes it")
		if own != nil {
			outside.AssertUnmanaged(w, "it is out of scope")
			continue
		}
		stored := outside.Get(w)
		assert.NotContains(t, fixture.TemplateAnnotations(stored), fixture.ConfigHash, "%s: a label excludes it", w)
		assert.True(t, noDummy(stored), "%s: the loop has written a request that the webhook did not take away", w)
		assert.Contains(t, stored.GetAnnotations()[fixture.ConfigRecord], "v1:-:", "%s: what its pods have is recorded, for the end of the exclusion", w)
	}
	requests, err := in.ControlPlane().Audit().Since(t.Context(), mark)
	require.NoError(t, err)
	assert.Empty(t, requests.By(in.Identity().User).In(outside.Namespace).Writes(), "out of scope nothing is written, Events included")
	if own != nil {
		fixture.AssertNothingDenied(t, own)
	}
}

// image releases a new image of each workload.
func image(s *fixture.Fixture, workloads []observe.Workload) {
	s.Helper()
	for _, w := range workloads {
		require.NoError(s, setImage(s, w, "example.com/app:2"))
	}
}
