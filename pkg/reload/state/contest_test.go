package state

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// assertGrowing asserts how long each of a row of writes waits that another writer undoes, and returns when the last one is undone.
func assertGrowing(t *testing.T, wait func(now time.Time) time.Duration, done func(now time.Time)) time.Time {
	t.Helper()
	const second, undone = time.Second, 30 * time.Millisecond
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	growing := []time.Duration{0, 0, 0, second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second}
	for i, want := range append(growing, slices.Repeat([]time.Duration{time.Minute}, 64)...) {
		waits := wait(now)
		assert.InDelta(t, want, waits, float64(undone), "write %d", i+1)
		now = now.Add(waits)
		done(now)
		now = now.Add(undone)
	}
	return now
}

func TestRecordThatIsRemovedEachTimeIsWrittenEverMoreRarely(t *testing.T) {
	t.Parallel()
	c, key := &contests{}, workload.Key{Name: "web"}
	assertGrowing(t,
		func(now time.Time) time.Duration { return c.Wait(key, "", now) },
		func(now time.Time) { c.Wrote(key, "", now) },
	)
}

func TestOnlyWritesThatWereUndoneMakeAContest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, b, c := recordOf(t, "a"), recordOf(t, "b"), recordOf(t, "c")
	tests := map[string]struct {
		// records are those that were there before each write.
		records []string
		every   time.Duration
		want    bool
	}{
		"removed":                     {records: []string{"", "", "", ""}, every: time.Second, want: true},
		"reverted":                    {records: []string{a, a, a, a}, every: time.Second, want: true},
		"another junk each time":      {records: []string{a, "junk 1", "junk 2", "junk 3"}, every: time.Second, want: true},
		"removed and junk in turn":    {records: []string{a, "", "junk", ""}, every: time.Second, want: true},
		"junk now and then":           {records: []string{a, "junk 1", "junk 2", "junk 3"}, every: contestOver},
		"objects are created in turn": {records: []string{"", a, b, c}, every: time.Second},
		"a release tool now and then": {records: []string{"", "", "", ""}, every: contestOver},
		"a release tool undoes two":   {records: []string{"", "", ""}, every: time.Second},
		"another one in between":      {records: []string{"", "", a, "", ""}, every: time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, key, at := &contests{}, workload.Key{Name: "web"}, now
			for _, before := range tc.records[:len(tc.records)-1] {
				found.Wrote(key, before, at)
				at = at.Add(tc.every)
			}
			wait := found.Wait(key, tc.records[len(tc.records)-1], at.Add(-tc.every))
			assert.Equal(t, tc.want, wait > 0, wait)
			assert.Zero(t, found.Wait(workload.Key{Name: "other"}, "", at), "each workload for itself")
		})
	}
}

// recordOf returns a Record of one object.
func recordOf(t *testing.T, name string) string {
	t.Helper()
	text, fits := record.New("hash", "1c9e04ab", map[reference.Ref]record.Item{{Kind: reference.ConfigMap, Name: name}: {}}).Text(1 << 10)
	require.True(t, fits, "a Record of one object fits into 1 KiB")
	_, err := record.Parse(text)
	require.NoError(t, err)
	return text
}

// What the loop removes, another writer may set again: the same text, or another one each time.
func TestAnnotationThatIsSetAgainEachTimeIsRemovedEverMoreRarely(t *testing.T) {
	t.Parallel()
	c, key := &contests{}, workload.Key{Name: "web"}
	now := assertGrowing(t,
		func(now time.Time) time.Duration { return c.WaitToRemove(key, "paused-at", now) },
		func(now time.Time) { c.Removed(key, "paused-at", now) },
	)
	assert.Zero(t, c.WaitToRemove(key, "config-hash", now), "each annotation for itself")
	assert.Zero(t, c.Wait(key, "", now), "so is the Record")
	assert.Zero(t, c.WaitToRemove(workload.Key{Name: "other"}, "paused-at", now), "each workload for itself")
	c.Wrote(key, "", now)
	assert.Positive(t, c.WaitToRemove(key, "paused-at", now), "a Record that is written ends no other row")
	c.Set(key, "paused-at")
	assert.Zero(t, c.WaitToRemove(key, "paused-at", now), "what the loop has set itself is no other writer's")
}

func TestAnnotationsThatAreRemovedNowAndThenMakeNoContest(t *testing.T) {
	t.Parallel()
	c, key := &contests{}, workload.Key{Name: "web"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 6 {
		assert.Zero(t, c.WaitToRemove(key, "config-hash", now))
		c.Removed(key, "config-hash", now)
		now = now.Add(contestOver)
	}
}

func TestContestsAreForgotten(t *testing.T) {
	t.Parallel()
	m, key := &State{}, workload.Key{Name: "web"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 5 {
		m.Contests.Wrote(key, "", now)
	}
	require.Positive(t, m.Contests.Wait(key, "", now))
	m.Forget(key)
	assert.Zero(t, m.Contests.Wait(key, "", now), "a workload that was deleted and created again was not written by others")
	m.Contests.Wrote(key, "", now)
	m.Contests.Wrote(workload.Key{Name: "other"}, "", now.Add(contestOver))
	assert.Len(t, m.Contests.entries, 1, "what is long ago is dropped")
	m.Contests.Removed(key, "config-hash", now.Add(contestOver))
	m.Contests.Wrote(workload.Key{Name: "other"}, "", now.Add(2*contestOver-time.Second))
	assert.Len(t, m.Contests.entries, 2, "what is removed is kept as long")
	m.Contests.Removed(workload.Key{Name: "other"}, "config-hash", now.Add(2*contestOver))
	assert.Len(t, m.Contests.entries, 1, "and is dropped likewise")
}
