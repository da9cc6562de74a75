package sequence_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// steadily makes attempts, each in a namespace of its own, until one ends as it should. The webhook gives up reading after two
// seconds: where the machine stalls for as long, a write passes without a stamp, and another restart follows, rightly.
func steadily(t *testing.T, attempt func(s *fixture.Fixture) error) {
	t.Helper()
	require.NoError(t, fixture.Steadily(t, shared, func() error { return attempt(fixture.New(t, shared)) }))
}

// changed returns an error, after [fixture.Fixture.Settled], unless a workload has had n template changes. None may have gone unseen.
func changed(s *fixture.Fixture, of observe.Workload, n int, why string) error {
	s.Helper()
	require.Zero(s, s.Watcher.Unseen(of), "versions of %s that the observer missed", of)
	if changes := s.Watcher.Changes(of); len(changes) != n {
		return fmt.Errorf("%s has had %d template changes, not %d (%s): %v", of, len(changes), n, why, changes)
	}
	return nil
}
