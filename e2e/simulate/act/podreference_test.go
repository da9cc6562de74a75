package act

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	greeting = `{"name": "app", "key": "greeting"}`
	maybe    = `{"name": "app", "key": "greeting", "optional": true}`
)

// podSpec returns the stored pod spec of a workload, and its only container.
func (f *recorder) podSpec(on string) (spec, container world.Object) {
	key, err := parseWorkload(on, workloadResources())
	require.NoError(f.t, err)
	spec = world.Section(templateOf(key.Resource, f.get(on)), "spec")
	containers := spec["containers"].([]any)
	require.Len(f.t, containers, 1)
	return spec, containers[0].(world.Object)
}

// variable returns the source of the variable that the act keeps in a container; nil if it has none.
func (f *recorder) variable(container world.Object) any {
	found, _ := cut(container["env"], referenceVariable)
	return found["valueFrom"]
}

func (f *recorder) editReference(on, in, how, to string) error {
	return f.do(EditPodReferences, on, "in", in, "how", how, "to", to)
}

func TestReferenceOfAVariableIsAddedFlippedReplacedAndDropped(t *testing.T) {
	t.Parallel()
	for _, on := range []string{cart, "statefulsets/shop/store", "cronjobs/shop/nightly"} {
		f := newRecorder(t)
		_, before := f.podSpec(on)
		steps := []struct{ how, to, want string }{
			{"required", "configmaps/app/greeting", `{"configMapKeyRef": ` + greeting + `}`},
			{"flipped", "secrets/db/password", `{"configMapKeyRef": ` + maybe + `}`},
			{"flipped", "secrets/db/password", `{"configMapKeyRef": ` + greeting + `}`},
			{"optional", "configmaps/app/greeting", `{"configMapKeyRef": ` + maybe + `}`},
			{"required", "secrets/db/password", `{"secretKeyRef": {"name": "db", "key": "password"}}`},
		}
		for _, s := range steps {
			require.NoError(t, f.editReference(on, "env", s.how, s.to))
			_, container := f.podSpec(on)
			assert.JSONEq(t, s.want, string(f.encode(f.variable(container).(world.Object))), "%s of %s", s.how, on)
		}
		require.NoError(t, f.editReference(on, "env", "absent", "configmaps/app/greeting"))
		_, after := f.podSpec(on)
		assert.Equal(t, before, after, "all else stays as it is")
	}
}

func TestReferenceOfAnInitContainerIsItsVariable(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.editReference(cart, "init", "optional", "configmaps/app/greeting"))
	require.NoError(t, f.editReference(cart, "init", "flipped", "configmaps/app/greeting"))
	spec, container := f.podSpec(cart)
	assert.Nil(t, f.variable(container))
	initContainer, others := cut(spec["initContainers"], initializer)
	assert.Empty(t, others)
	assert.JSONEq(t, `{"configMapKeyRef": `+greeting+`}`, string(f.encode(f.variable(initContainer).(world.Object))))
	require.NoError(t, f.editReference(cart, "init", "absent", "configmaps/app/greeting"))
	spec, _ = f.podSpec(cart)
	assert.NotContains(t, spec, "initContainers")
}

func TestReferenceOfAProjectedVolumeIsMounted(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	before, container := f.podSpec(cart)
	projected := func() world.Object {
		spec, container := f.podSpec(cart)
		mount, _ := cut(container["volumeMounts"], referenceVolume)
		require.NotNil(t, mount)
		volume, _ := cut(spec["volumes"], referenceVolume)
		return world.Section(volume, "projected")["sources"].([]any)[0].(world.Object)
	}
	require.NoError(t, f.editReference(cart, "projected", "required", "secrets/tls/tls.key"))
	assert.Equal(t, world.Object{"secret": world.Object{"name": "tls"}}, projected())
	require.NoError(t, f.editReference(cart, "projected-key", "required", "configmaps/app/greeting"))
	require.NoError(t, f.editReference(cart, "projected", "flipped", "secrets/tls/tls.key"))
	assert.JSONEq(t, `{"configMap": {"name": "app", "optional": true, "items": [{"key": "greeting", "path": "greeting"}]}}`,
		string(f.encode(projected())))
	require.NoError(t, f.editReference(cart, "projected", "absent", "secrets/tls/tls.key"))
	after, emptied := f.podSpec(cart)
	assert.Equal(t, before, after)
	assert.Equal(t, container, emptied)
}

func TestReferenceThatIsNotThereIsNeitherFlippedNorDropped(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"flipped", "absent"} {
		for _, in := range []string{"env", "init", "projected"} {
			f := newRecorder(t)
			require.ErrorIs(t, f.editReference(cart, in, how, "configmaps/app/greeting"), ErrSkipped)
			assert.Equal(t, []string{"GET"}, f.methods())
		}
	}
}

func TestReferenceOfARolloutIsStoredAsItIsWritten(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.NoError(t, f.do(CreateRollout, Rollout))
	require.NoError(t, f.editReference(Rollout, "env", "required", "secrets/db/password"))
	require.NoError(t, f.editReference(Rollout, "env", "flipped", "secrets/db/password"))
	_, container := f.podSpec(Rollout)
	assert.Equal(t, world.Object{"secretKeyRef": world.Object{"name": "db", "key": "password", "optional": true}}, f.variable(container))
}

func TestCheckNamesTheWrongReference(t *testing.T) {
	t.Parallel()
	e := mustFind(t, Catalogue(), EditPodReferences)
	for _, to := range []string{"configmaps/app", "configmaps/other/x", "pods/app/x", "configmaps/app/a b", "configmaps/shop/app/x"} {
		s := history.Step{Do: EditPodReferences, On: cart, With: map[string]string{"how": "required", "to": to}}
		assert.ErrorContains(t, e.Check(s), "with.to", to)
	}
}
