package state

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestBackoffIsEachWorkloadsOwn(t *testing.T) {
	t.Parallel()
	b := NewBackoff()
	poisoned, healthy := workload.Key{Name: "poisoned"}, workload.Key{Name: "healthy"}
	for range 20 {
		b.rarely.When(poisoned)
		b.soon.When(poisoned)
	}
	assert.Equal(t, longestSoon, b.soon.When(poisoned), "what may pass is tried again within seconds")
	assert.Equal(t, longestRarely, b.rarely.When(poisoned))
	assert.Equal(t, firstSoon, b.soon.When(healthy))
	assert.Equal(t, firstRarely, b.rarely.When(healthy))
	b.Forget(poisoned)
	assert.Equal(t, firstRarely, b.rarely.When(poisoned), "a success starts its pace again")
}

func TestOnlyConflictsMakeARequestAskForTheLiveState(t *testing.T) {
	t.Parallel()
	b, key := NewBackoff(), workload.Key{Name: "web"}
	for range 20 {
		b.When(key, Soon)
		b.When(key, NeedsUser)
	}
	assert.False(t, b.Exceeds(key, FewConflicts), "an API server that is away is no constant change")
	for range int(FewConflicts) {
		assert.False(t, b.Exceeds(key, FewConflicts), "fewer conflicts than the limit")
		b.When(key, Conflict)
	}
	assert.True(t, b.Exceeds(key, FewConflicts), "as many conflicts as the limit")
	waited := time.Duration(0)
	for !b.Exceeds(key, ManyConflicts) {
		waited += b.When(key, Conflict)
		assert.Equal(t, waited > 2*time.Second, b.Exceeds(key, SomeConflicts))
	}
	assert.InDelta(t, 15, waited.Seconds(), 5, "another replica may need 10 s to read its configuration")
	assert.False(t, b.Exceeds(workload.Key{Name: "other"}, FewConflicts), "conflicts of one workload do not count for another")
	b.Forget(key)
	assert.False(t, b.Exceeds(key, FewConflicts), "the next change is asked for with its digest again")
}

func TestFailuresAreCountedByWhatTheyAre(t *testing.T) {
	t.Parallel()
	key := workload.Key{Name: "web"}
	for name, tc := range map[string]struct {
		pace              Pace
		persists, lingers int
	}{
		"what a user must mend":    {pace: NeedsUser},
		"a missing permission":     {pace: Refused},
		"what passes by itself":    {pace: Soon, persists: Persistent, lingers: Persistent + 1},
		"a conflict with a change": {pace: Conflict, lingers: Persistent + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBackoff()
			assert.False(t, b.Failing(key), "no attempt has failed yet")
			for n := 1; n <= Persistent+1; n++ {
				b.When(key, tc.pace)
				assert.True(t, b.Failing(key), "an attempt has failed and none has succeeded since")
				assert.Equal(t, tc.persists > 0 && n >= tc.persists, b.HasFailedRepeatedly(key), n)
				assert.Equal(t, tc.lingers > 0 && n >= tc.lingers, b.HasFailedLong(key), n)
			}
			b.Forget(key)
			assert.False(t, b.Failing(key), "failures are forgotten after a success")
		})
	}
}

// Where the workload and its configuration change all the time, neither kind of request shuts out the other.
func TestRequestsForEachGenerationAndForTheLiveStateHaveTheirTurns(t *testing.T) {
	t.Parallel()
	b, key := NewBackoff(), workload.Key{Name: "web"}
	assert.False(t, b.IsOvertaken(key), "there was no failure")
	for range FewConflicts {
		b.When(key, Overtaken)
	}
	assert.True(t, b.IsOvertaken(key), "another writer was faster each time")
	for range FewConflicts {
		assert.False(t, b.Exceeds(key, FewConflicts), "the digest was rejected less often")
		b.When(key, Conflict)
	}
	assert.True(t, b.Exceeds(key, FewConflicts), "the digest was rejected as often")
	assert.False(t, b.IsOvertaken(key), "the live state is asked for")
	b.When(key, Overtaken)
	assert.True(t, b.IsOvertaken(key), "the request for the live state came too late")
	assert.False(t, b.Exceeds(key, FewConflicts), "one for each generation has its turn")
}
