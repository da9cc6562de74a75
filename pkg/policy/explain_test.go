package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/record"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	changes := []Change{{Ref: a, Type: Modified}, {Ref: Any, Type: Modified}}

	first := NewLastReload(changes, at, "not JSON")
	assert.Equal(t, record.LastReload{
		Time: time.Date(2026, 1, 2, 2, 4, 5, 678_000_000, time.UTC), Cause: record.CauseConfigChange,
		Changes: []record.Change{{Ref: "configmap/a", Type: "modified"}, {Ref: "*", Type: "modified"}},
	}, first)

	first.Hash = "one"
	second := NewLastReload(nil, at.Add(time.Hour), first.String())
	assert.Equal(t, []record.Past{{Time: first.Time, Hash: "one", Cause: record.CauseConfigChange}}, second.Before)
	assert.Empty(t, second.Changes)
}
