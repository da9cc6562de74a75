package state

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestRecreationsOutliveTheJob(t *testing.T) {
	t.Parallel()
	s, key := State{}, workload.Key{Kind: "batch/v1/Job", Namespace: "shop", Name: "import"}
	assert.Empty(t, s.Recreations.First(key))
	s.Recreations.Add(key, "a")
	s.Recreations.Add(key, "b")
	s.Recreations.Add(key, "a")
	s.Forget(key)
	assert.Equal(t, "a", s.Recreations.First(key))
	s.Recreations.Done(key, "a")
	assert.Equal(t, "b", s.Recreations.First(key), "a was there once")
	s.Recreations.Done(key, "c")
	s.Recreations.Done(key, "b")
	assert.Empty(t, s.Recreations.First(key))
	assert.Empty(t, s.Recreations.secrets.entries, "nothing remains of a Job that was created again")
	s.Recreations.Done(key, "b")
}

func TestRecreationIsMadeOnce(t *testing.T) {
	t.Parallel()
	s, key := State{}, workload.Key{Kind: "batch/v1/Job", Namespace: "shop", Name: "import"}
	s.Recreations.Created(key, "a")
	assert.False(t, s.Recreations.IsCreated(key, "a"), "a Secret that is not known")
	s.Recreations.Add(key, "a")
	s.Recreations.Add(key, "b")
	s.Recreations.Created(key, "a")
	s.Recreations.Add(key, "a")
	assert.True(t, s.Recreations.IsCreated(key, "a"), "the new Job exists, and adding its Secret again does not undo that")
	assert.False(t, s.Recreations.IsCreated(key, "b"), "another Job of the name")
	s.Recreations.Done(key, "a")
	assert.False(t, s.Recreations.IsCreated(key, "a"), "a completed recreation is forgotten")
}

func TestSecretsOfANamespaceAreCounted(t *testing.T) {
	t.Parallel()
	s, key := State{}, workload.Key{Kind: "batch/v1/Job", Namespace: "shop", Name: "import"}
	other := key
	other.Namespace = "other"
	s.Recreations.Add(key, "a")
	s.Recreations.Add(key, "b")
	s.Recreations.Add(other, "c")
	s.Recreations.Leave(other, "c")
	count, left := s.Recreations.In("shop")
	assert.Equal(t, 2, count)
	assert.Zero(t, left)
	s.Recreations.Leave(key, "b")
	count, left = s.Recreations.In("shop")
	assert.Equal(t, 2, count, "the one that is left counts")
	assert.Equal(t, Left{key, "b"}, left)
	s.Recreations.Done(left.Job, left.Secret)
	count, left = s.Recreations.In("shop")
	assert.Equal(t, 1, count)
	assert.Zero(t, left)
	s.Recreations.Leave(key, "a")
	_, left = s.Recreations.In("shop")
	assert.Equal(t, Left{key, "a"}, left)
}

func TestSecretThatStaysHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s, key := State{}, workload.Key{Kind: "batch/v1/Job", Namespace: "shop", Name: "import"}
	s.Recreations.Leave(key, "a")
	s.Recreations.Add(key, "a")
	assert.Equal(t, "a", s.Recreations.First(key), "it was not known when it was left")
	s.Recreations.Leave(key, "b")
	assert.Equal(t, "a", s.Recreations.First(key), "it is another Secret")
	s.Recreations.Add(key, "b")
	s.Recreations.Leave(key, "a")
	assert.Equal(t, "b", s.Recreations.First(key))
	s.Recreations.Leave(key, "b")
	assert.Empty(t, s.Recreations.First(key), "nothing is to be done about them")
	s.Recreations.Done(key, "a")
	s.Recreations.Done(key, "b")
	assert.Empty(t, s.Recreations.secrets.entries)
}
