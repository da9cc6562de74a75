package apiserver_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// decoded reads a JSON object.
func decoded(t *testing.T, text string) world.Object {
	t.Helper()
	var o world.Object
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	return o
}

func TestStoreKeepsWhatTheServerManages(t *testing.T) {
	t.Parallel()
	var commits []world.Commit
	s := server(t, func(o *apiserver.Options) { o.OnCommit = func(c world.Commit) { commits = append(commits, c) } })
	key := worldKey("deployments", "cart")
	first, err := s.Store(key, decoded(t, cartBody))
	require.NoError(t, err)
	before := world.Meta(first)
	assert.EqualValues(t, 1, before.GetGeneration())

	same, err := s.Store(key, decoded(t, cartBody))
	require.NoError(t, err)
	assert.Equal(t, before.GetResourceVersion(), world.Meta(same).GetResourceVersion(), "nothing changes")

	changed := before.DeepCopy()
	changed.Object["status"] = map[string]any{"replicas": int64(3)}
	o, err := s.Store(key, changed.Object)
	require.NoError(t, err)
	assert.EqualValues(t, 3, field(world.Meta(o), "status", "replicas"), "the status is stored, too")
	assert.EqualValues(t, 1, world.Meta(o).GetGeneration())
	assert.Equal(t, before.GetUID(), world.Meta(o).GetUID())

	_, err = s.Store(key, changed.Object)
	require.True(t, apierrors.IsConflict(err), "the version is gone: %v", err)

	changed = world.Meta(o).DeepCopy()
	changed.Object["spec"].(map[string]any)["replicas"] = int64(5)
	changed.SetResourceVersion("")
	o, err = s.Store(key, changed.Object)
	require.NoError(t, err)
	assert.EqualValues(t, 2, world.Meta(o).GetGeneration())
	for _, c := range commits {
		assert.Nil(t, c.Call)
	}
	assert.Len(t, commits, 4)
}

func TestStoreStatusChangesNothingElse(t *testing.T) {
	t.Parallel()
	s := server(t)
	key := worldKey("deployments", "cart")
	_, err := s.StoreStatus(key, decoded(t, cartBody))
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	first, err := s.Store(key, decoded(t, cartBody))
	require.NoError(t, err)
	changed := world.Meta(first).DeepCopy()
	changed.Object["status"] = map[string]any{"replicas": int64(3)}
	changed.Object["spec"].(map[string]any)["replicas"] = int64(7)
	o, err := s.StoreStatus(key, changed.Object)
	require.NoError(t, err)
	assert.EqualValues(t, 3, field(world.Meta(o), "status", "replicas"))
	assert.EqualValues(t, 1, field(world.Meta(o), "spec", "replicas"))
	assert.EqualValues(t, 1, world.Meta(o).GetGeneration())
}

func TestRemoveEndsWhatFinalizersHold(t *testing.T) {
	t.Parallel()
	s := server(t)
	key := worldKey("configmaps", "app")
	assert.False(t, s.Remove(key), "the object was never stored")
	_, err := s.Store(key, decoded(t, `{"metadata":{"finalizers":["a.b/c"]}}`))
	require.NoError(t, err)
	require.True(t, s.Remove(key), "the object was stored")
	_, ok := s.Get(key)
	assert.False(t, ok, "the object is gone, whatever its finalizers")
	assert.Empty(t, s.List(world.ConfigMaps, "shop"))
}

func TestListIsSorted(t *testing.T) {
	t.Parallel()
	s := server(t)
	for _, name := range []string{"b", "c", "a"} {
		set(t, s, name, name)
	}
	var names []string
	for _, o := range s.List(world.ConfigMaps, "") {
		names = append(names, world.Meta(o).GetName())
	}
	assert.Equal(t, []string{"a", "b", "c"}, names)
	assert.Nil(t, s.List(world.Resource{Plural: "none"}, ""))
	_, err := s.Store(world.Key{Resource: world.Resource{Plural: "none"}}, nil)
	require.ErrorContains(t, err, "the model serves no none")
}
