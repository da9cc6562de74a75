package chain_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// fromSettings makes the sub-commands read the configuration of the installation.
const fromSettings = "--config=configmap:pod-reloader/settings"

// graphFixture is a namespace with custom resources of any kind, and workloads that track some of them.
type graphFixture struct {
	*fixture.Fixture
	// rolled is how often each workload has been restarted.
	rolled map[observe.Workload]int
	// written are the kinds that the test has written since the barrier before, probes counts how often the probe of a kind has
	// changed, and unserved is a kind that may be away, so that it has no probe: see [graphFixture.settled].
	written  sync.Map
	probes   map[string]int
	unserved string
}

func newGraphFixture(t *testing.T, in *installation.Installation) *graphFixture {
	t.Helper()
	return &graphFixture{Fixture: fixture.New(t, in), rolled: map[observe.Workload]int{}}
}

// certManager is the group whose kinds come with the controllers.
const certManager = "cert-manager.io"

// custom is an object of a kind of this suite, in the version that is stored.
func (s *graphFixture) custom(kind, name string) *unstructured.Unstructured {
	s.Helper()
	resource, known := resources[kind]
	if !known {
		resource.Group = certManager
	}
	version := "v1"
	if n := len(resource.Versions); n > 0 {
		version = resource.Versions[n-1]
	}
	s.written.Store(kind, true)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: resource.Group, Version: version, Kind: kind})
	if !resource.ClusterScoped {
		u.SetNamespace(s.Namespace)
	}
	u.SetName(name)
	return u
}

// make creates an object with a spec in YAML.
func (s *graphFixture) make(kind, name, spec string) *unstructured.Unstructured {
	s.Helper()
	u := s.custom(kind, name)
	fields := map[string]any{}
	require.NoError(s, yaml.Unmarshal([]byte(spec), &fields))
	u.Object["spec"] = fields
	require.NoError(s, s.Create(s.Context(), u))
	return u
}

// edit changes the spec of an object, by a JSON merge patch.
func (s *graphFixture) edit(kind, name, patch string) {
	s.Helper()
	s.Merge(s.custom(kind, name), name, `{"spec":`+patch+`}`)
}

// remove deletes an object.
func (s *graphFixture) remove(object client.Object, name string) {
	s.Helper()
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	require.NoError(s, s.Delete(s.Context(), object))
}

// report writes the status of an object, in YAML. GENERATION is that of the object.
func (s *graphFixture) report(kind, name, status string) {
	s.Helper()
	s.Await("the status of "+name, func() error {
		u := s.read(kind, name)
		fields := map[string]any{}
		generation, err := yaml.Marshal(u.GetGeneration())
		require.NoError(s, err)
		text := strings.ReplaceAll(status, "GENERATION", strings.TrimSpace(string(generation)))
		require.NoError(s, yaml.Unmarshal([]byte(text), &fields))
		u.Object["status"] = fields
		return s.Status().Update(s.Context(), u) // a conflict is tried again
	})
}

// read reads an object.
func (s *graphFixture) read(kind, name string) *unstructured.Unstructured {
	s.Helper()
	u := s.custom(kind, name)
	require.NoError(s, s.Client.Get(s.Context(), client.ObjectKeyFromObject(u), u))
	return u
}

// tracks creates a Deployment that tracks a custom resource, and waits until pod-reloader knows the whole graph.
func (s *graphFixture) tracks(name, referent string) observe.Workload {
	s.Helper()
	w := s.tracksHeld(name, referent)
	s.AwaitAdopted(w, referent)
	s.Settled()
	s.written.Clear()
	// The Deployment may have been created before its graph was known as a whole.
	s.rolled[w] = len(s.Watcher.Changes(w))
	require.LessOrEqual(s, s.rolled[w], 1)
	return w
}

// tracksHeld creates a Deployment that tracks a custom resource, in whatever state.
func (s *graphFixture) tracksHeld(name, referent string) observe.Workload {
	s.Helper()
	return s.Deployment(name, fixture.Uses{Annotations: map[string]string{referents: referent}})
}

// rolls requires one more restart than before, and no further one.
func (s *graphFixture) rolls(w observe.Workload, why string) {
	s.Helper()
	s.rolled[w]++
	s.AwaitChanges(w, s.rolled[w], why)
	s.stays(w, why)
}

// stays requires that there is no further restart.
func (s *graphFixture) stays(w observe.Workload, why string) {
	s.Helper()
	s.settled()
	s.RequireChanges(w, s.rolled[w], why)
}
