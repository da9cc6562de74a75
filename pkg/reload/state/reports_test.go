package state

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestLastReportsAreKept(t *testing.T) {
	t.Parallel()
	key, t0 := workload.Key{Name: "cart"}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &reports{}
	seen := func(text string, at time.Time) []bool {
		isNew, open := m.Observe(key, text, at)
		return []bool{isNew, open}
	}
	assert.Equal(t, []bool{false, false}, seen("", t0))
	assert.Empty(t, m.entries, "most workloads were never reloaded")
	assert.Zero(t, m.Seen(key), "no reload was seen")
	assert.Equal(t, []bool{true, true}, seen("a", t0))
	assert.Equal(t, []bool{false, true}, seen("a", t0.Add(time.Second)), "it is not decided")
	assert.Equal(t, t0, m.Seen(key), "when it was first seen")
	m.MarkDecided(key)
	assert.Equal(t, []bool{false, false}, seen("a", t0.Add(time.Second)))
	assert.Equal(t, []bool{true, true}, seen("b", t0.Add(time.Minute)))
	assert.Equal(t, t0.Add(time.Minute), m.Seen(key))

	names := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}
	for _, name := range names {
		assert.True(t, m.Report(key, name, t0), "no Event was sent for reload %s", name)
	}
	for _, name := range slices.Backward(names[1:]) {
		assert.False(t, m.Report(key, name, t0), name)
	}
	assert.True(t, m.Report(key, "0", t0), "the oldest is dropped")
}

func TestEmittedEventsAreKeptForAnHour(t *testing.T) {
	t.Parallel()
	key, other := workload.Key{Name: "cart"}, workload.Key{Name: "web"}
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &reports{}
	m.Observe(key, "a", t0)
	assert.True(t, m.Report(key, "a", t0.Add(time.Minute)), "no Event was sent for this reload")
	m.Forget(key)
	assert.Zero(t, m.Seen(key), "the workload is forgotten")
	assert.False(t, m.Report(key, "a", t0.Add(time.Hour)), "it outlives the workload")
	assert.True(t, m.Report(other, "a", t0.Add(time.Hour)), "no Event was sent for this reload of the other workload")
	assert.True(t, m.Report(key, "b", t0.Add(100*time.Minute)), "no Event was sent for the second reload")
	assert.True(t, m.Report(other, "b", t0.Add(3*time.Hour)), "no Event was sent for the second reload of the other workload")
	assert.False(t, m.Report(key, "a", t0.Add(3*time.Hour)), "kept with the Event that followed it")
	m.Report(other, "c", t0.Add(4*time.Hour))
	assert.NotContains(t, m.emitted.recent, key)
	assert.NotContains(t, m.emitted.earlier, key)
	assert.True(t, m.Report(key, "a", t0.Add(4*time.Hour)), "no more than needed")
}
