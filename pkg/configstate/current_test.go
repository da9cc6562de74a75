package configstate_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestCurrentReadsAVersionOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	db := s.put(secret("a", "db", "x"))
	f := newFixture(t, s, nil).start(t)
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			states, err := f.ReadIfChanged(t.Context(), "a", []reference.Ref{sec("db"), cm("none")})
			if assert.NoError(t, err) {
				assert.NotEmpty(t, states[sec("db")].Entries)
				assert.True(t, states[cm("none")].Absent, "the ConfigMap does not exist")
			}
		})
	}
	callers.Wait()
	assert.Equal(t, []string{"get /api/v1/namespaces/a/secrets/db from " + db.GetResourceVersion()}, s.seen())
}

func TestCurrentFromAnAPIServerThatIsBehind(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	db := s.put(secret("a", "db", "x"))
	s.behind = true
	f := newFixture(t, s, nil).start(t)
	states, err := f.ReadIfChanged(t.Context(), "a", []reference.Ref{sec("db")})
	require.NoError(t, err)
	assert.Equal(t, db.GetResourceVersion(), states[sec("db")].ResourceVersion)
	assert.ElementsMatch(t, []string{
		"get /api/v1/namespaces/a/secrets/db from " + db.GetResourceVersion(),
		"get /api/v1/namespaces/a/secrets/db",
	}, s.seen(), "what its cache does not have yet is read from its storage")
}
