package reloader_test

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

func underStrategy(t *testing.T, cp *controlplane.ControlPlane, strategy string) {
	t.Helper()
	fixture.ServeKind(t, cp, "Rollout")
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		Replicas: 1, KeepRunning: true, LongLease: true, Components: []string{"argo-rollouts"}, Args: []string{"--reload-strategy=" + strategy},
	})
	t.Run("Reload", func(t *testing.T) { t.Parallel(); reloadUnderStrategy(fixture.New(t, in), strategy) })
	t.Run("Rollback", func(t *testing.T) { t.Parallel(); rollBackUnderStrategy(fixture.New(t, in)) })
	t.Run("MergePatches", func(t *testing.T) { t.Parallel(); mergePatchesUnderStrategy(withRollouts(t, in), strategy) })
	t.Run("FromReloader", func(t *testing.T) { t.Parallel(); comeFromReloader(fixture.New(t, in), strategy) })
	t.Run("BesideReloader", func(t *testing.T) { t.Parallel(); runBesideReloader(fixture.New(t, in), strategy) })
	t.Run("Clean", func(t *testing.T) { t.Parallel(); cleanUp(fixture.New(t, in)) })
	t.Run("AutoToSearch", func(t *testing.T) { t.Parallel(); moveFromAutoToSearch(fixture.New(t, in)) })
}

func strategyInDirectMode(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		Replicas: 1, WithoutWebhook: true, Args: []string{"--reload-strategy=env-vars", "--env-vars-hash=sha1"},
	})
	s := fixture.New(t, in)
	for _, w := range reloadOnceUnderStrategy(s, "env-vars") {
		assert.Equal(t, sha1Of("key=2"), written(s, w, "env-vars", "secret", "db"), "as Reloader does")
	}
	cleanUp(fixture.New(t, in))
}

// forReloader returns a manifest with a sidecar before the container that reads configmap/app and secret/db, both for
// Reloader's annotations.
func forReloader(s *fixture.Fixture, kind, image, key string) *unstructured.Unstructured {
	s.Helper()
	object := s.Manifest(kind, "web", fixture.Uses{
		ConfigMaps: []string{"app"}, Secrets: []string{"db"}, Replicas: 1,
		Annotations: map[string]string{fixture.ConfigMaps: "", fixture.Secrets: "", key: "true"},
	})
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	require.NoError(s, err)
	main := containers[0].(map[string]any) //nolint:forcetypeassert // the fixture has made it
	main["image"] = image
	main["env"] = []any{map[string]any{"name": "X", "value": "x"}}
	containers = []any{map[string]any{"name": "sidecar", "image": "example.com/sidecar:1"}, main}
	require.NoError(s, unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"))
	return object
}

func sha1Of(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// start creates the objects and a workload of each of some kinds.
func start(s *fixture.Fixture, kinds ...string) []observe.Workload {
	s.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	var workloads []observe.Workload
	for _, kind := range kinds {
		s.CreatePromptly(forReloader(s, kind, "example.com/app:1", fixture.ReloaderAuto))
		w := observe.Workload{Kind: kind, Namespace: s.Namespace, Name: "web"}
		s.AwaitAdopted(w, "configmap/app")
		workloads = append(workloads, w)
	}
	return workloads
}

// written requires what the last reload has written for an object.
func written(s *fixture.Fixture, of observe.Workload, strategy, kind, name string) string {
	s.Helper()
	stored := s.Get(of)
	if strategy == "env-vars" {
		values, _ := fixture.Environment(stored)
		return values["STAKATER_"+strings.ToUpper(name+"_"+kind)]
	}
	var source struct {
		Type, Name, Namespace, Hash string
		ContainerRefs               []string
		ObservedAt                  int64
	}
	text := fixture.TemplateAnnotations(stored)[fixture.ReloadedFrom]
	require.NoError(s, json.Unmarshal([]byte(text), &source), text)
	assert.Equal(s, []string{strings.ToUpper(kind), name, s.Namespace}, []string{source.Type, source.Name, source.Namespace})
	assert.Equal(s, []string{"main"}, source.ContainerRefs)
	assert.Positive(s, source.ObservedAt)
	return source.Hash
}

func reloadOnceUnderStrategy(s *fixture.Fixture, strategy string) []observe.Workload {
	s.Helper()
	workloads := start(s, "Deployment", "StatefulSet", "DaemonSet")
	s.Settled()
	for _, w := range workloads {
		s.RequireChanges(w, 0, "nothing has changed")
		_, names := fixture.Environment(s.Get(w))
		assert.Equal(s, []string{"X"}, names, "only a reload writes")
		assert.NotContains(s, fixture.TemplateAnnotations(s.Get(w)), fixture.ReloadedFrom)
	}
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(1, "one change is one restart", workloads...)
	for _, w := range workloads {
		assert.Equal(s, sha1Of("key=2"), written(s, w, strategy, "configmap", "app"), w)
	}
	s.SetSecret("db", "key", "2")
	s.AwaitExactly(2, "one change more is one restart more", workloads...)
	for _, w := range workloads {
		value := written(s, w, strategy, "secret", "db")
		assert.Regexp(s, "^[0-9a-f]{40}$", value)
	}
	return workloads
}

func reloadUnderStrategy(s *fixture.Fixture, strategy string) {
	s.Helper()
	workloads := reloadOnceUnderStrategy(s, strategy)
	for _, w := range workloads {
		assert.NotEqual(s, sha1Of("key=2"), written(s, w, strategy, "secret", "db"), "guesses of the content can be tested with a plain digest")
		for range 2 {
			require.NoError(s, s.Update(s.Context(), forReloader(s, w.Kind, "example.com/app:1", fixture.ReloaderAuto)), "a PUT that knows nothing of it")
		}
		containers, _, err := unstructured.NestedSlice(forReloader(s, w.Kind, "example.com/app:1", "x").Object, "spec", "template", "spec", "containers")
		require.NoError(s, err)
		text, err := json.Marshal(containers)
		require.NoError(s, err)
		s.MergeWorkload(w, `{"spec":{"template":{"spec":{"containers":`+string(text)+`}}}}`)
		applyAsControllersDo(s, forReloader(s, w.Kind, "example.com/app:1", fixture.ReloaderAuto))
	}
	s.AwaitExactly(2, "writes that lack what the strategy has written restart nothing", workloads...)
}

// applyAsControllersDo applies a manifest as GitOps controllers do, twice in each way.
func applyAsControllersDo(s *fixture.Fixture, manifest *unstructured.Unstructured) {
	s.Helper()
	text, err := json.Marshal(manifest.Object)
	require.NoError(s, err)
	for _, flags := range [][]string{nil, controlplane.ServerSide("argocd-controller"), controlplane.ServerSide("helm-controller")} {
		for range 2 {
			_, err := s.Installation.ControlPlane().KubectlInput(s.Patiently(), string(text), slices.Concat([]string{"apply", "-f", "-"}, flags)...)
			require.NoError(s, err)
		}
	}
}

// rollBackUnderStrategy goes back in several ways: the ReplicaSet is found again.
func rollBackUnderStrategy(s *fixture.Fixture) {
	s.Helper()
	w := start(s, "Deployment")[0]
	put := func(image string) {
		s.Helper()
		require.NoError(s, s.Update(s.Context(), forReloader(s, w.Kind, image, fixture.ReloaderAuto)))
	}
	changed := func(n int, why string) map[string]any {
		s.Helper()
		s.AwaitChanges(w, n, why)
		s.AwaitRolledOut(w)
		return templateOf(s, w)
	}
	first := changed(0, "it was created")
	s.SetConfigMap("app", "key", "2")
	second := changed(1, "a change")
	put("example.com/app:2")
	changed(2, "a release")
	put("example.com/app:1")
	assert.Equal(s, second, changed(3, "the release is taken back"))
	s.SetConfigMap("app", "key", "1")
	assert.Equal(s, first, changed(4, "the change is taken back"))
	s.SetConfigMap("app", "key", "2")
	assert.Equal(s, second, changed(5, "and forth"))
	s.AwaitExactly(5, "one restart each", w)
	assert.Equal(s, 3, s.Watcher.ReplicaSets(w), "one for each template")
}

// comeFromReloader takes over a workload that Reloader has reloaded before.
func comeFromReloader(s *fixture.Fixture, strategy string) {
	s.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	object := forReloader(s, "Deployment", "example.com/app:1", "example.org/none")
	template, _, err := unstructured.NestedMap(object.Object, "spec", "template")
	require.NoError(s, err)
	main := template["spec"].(map[string]any)["containers"].([]any)[1].(map[string]any) //nolint:forcetypeassert // see forReloader
	main["env"] = []any{
		map[string]any{"name": "STAKATER_APP_CONFIGMAP", "value": strings.Repeat("ab", 32)}, map[string]any{"name": "X", "value": "x"},
	}
	source := `{"type":"CONFIGMAP","name":"app","namespace":"x","hash":"ab","containerRefs":["main"],"observedAt":1}`
	template["metadata"].(map[string]any)["annotations"] = map[string]any{fixture.ReloadedFrom: source} //nolint:forcetypeassert // likewise
	require.NoError(s, unstructured.SetNestedMap(object.Object, template, "spec", "template"))
	s.CreatePromptly(object)
	w := observe.Deployment(s.Namespace, "web")
	s.MergeWorkload(w, `{"metadata":{"annotations":{"`+fixture.Reloader+`auto":"true"}}}`)
	s.AwaitAdopted(w, "configmap/app")
	require.NoError(s, s.Update(s.Context(), forReloader(s, w.Kind, "example.com/app:1", fixture.ReloaderAuto)))
	s.AwaitExactly(0, "what Reloader has written is adopted", w)
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "the first change")
	assert.Equal(s, sha1Of("key=2"), written(s, w, strategy, "configmap", "app"))
	_, names := fixture.Environment(s.Get(w))
	assert.Equal(s, []string{"STAKATER_APP_CONFIGMAP", "X"}, names, "in its position")
}

// runBesideReloader plays Reloader with the same strategy, which reloads each change, too: sooner or later than this program.
func runBesideReloader(s *fixture.Fixture, strategy string) {
	s.Helper()
	templates := map[string]string{
		"env-vars":    `{"spec":{"containers":[{"name":"main","env":[{"name":"STAKATER_APP_CONFIGMAP","value":"%064d"}]}]}}`,
		"annotations": `{"metadata":{"annotations":{"reloader.stakater.com/last-reloaded-from":"{\"type\":\"CONFIGMAP\",\"name\":\"app\",\"hash\":\"%064d\"}"}}}`,
	}
	w := start(s, "Deployment")[0]
	for n := range 10 {
		s.SetConfigMap("app", "key", fmt.Sprint("another ", n))
		if n%2 == 0 {
			s.AwaitChanges(w, n+1, "this program is first")
		}
		s.Strategic(fixture.Object(w), "web", `{"spec":{"template":`+fmt.Sprintf(templates[strategy], n)+`}}`)
		s.AwaitChanges(w, n+1, "Reloader is first")
	}
	s.AwaitExactly(10, "each change is one restart", w)
}

// moveFromAutoToSearch walks the path from auto to search and match.
func moveFromAutoToSearch(s *fixture.Fixture) {
	s.Helper()
	w := start(s, "Deployment")[0]
	match := `{"metadata":{"annotations":{"` + fixture.Reloader + `match":"true"}}}`
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "auto")
	s.Merge(&corev1.ConfigMap{}, "app", match)
	require.NoError(s, s.Update(s.Context(), forReloader(s, w.Kind, "example.com/app:1", fixture.Reloader+"search")))
	s.AwaitAdopted(w, "configmap/app")
	s.SetSecret("db", "key", "2")
	s.AwaitExactly(1, "neither step restarts, nor an object without match", w)
	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(w, 2, "it has match")
	s.Merge(&corev1.Secret{}, "db", match)
	s.AwaitAdopted(w, "secret/db")
	s.AwaitExactly(2, "marking more restarts nothing", w)
	s.SetSecret("db", "key", "3")
	s.AwaitExactly(3, "it has match now, and no restarts but those that were asked for", w)
}
