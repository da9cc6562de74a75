package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestTrackersAreASet(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var all trackers
	want := map[workload.Key]bool{}
	most := 0
	for step := range 20_000 {
		key := workload.Key{Name: fmt.Sprint(random.IntN(60))}
		grows := random.IntN(60) < 40-step/1000*2 // many at first, none in the end
		switch {
		case grows && !want[key]:
			all, want[key] = all.with(key), true
		case !grows:
			all = all.without(key)
			delete(want, key)
		}
		most = max(most, len(all.keys))
		wrong := slices.IndexFunc(all.keys, func(k workload.Key) bool { return !want[k] })
		require.True(t, len(all.keys) == len(want) && wrong < 0, "step %d: %v, want %v", step, all.keys, want)
	}
	assert.Greater(t, most, 2*few)
	assert.LessOrEqual(t, len(all.keys), few/2)
	assert.Nil(t, all.at, "a few take no map")
}

// The last one may come and go often: then no map is made each time.
func TestMapOfTrackersStaysUntilTheyAreFewer(t *testing.T) {
	t.Parallel()
	var all trackers
	key := func(i int) workload.Key { return workload.Key{Name: fmt.Sprint(i)} }
	for i := range few + 1 {
		all = all.with(key(i))
	}
	require.NotNil(t, all.at)
	all = all.without(key(few))
	assert.NotNil(t, all.at)
}

// 10,000 workloads of one object that go one by one must not compare 10^8 keys: to forget one takes a fraction of the time of
// a search through all.
func TestForgettingATrackerDoesNotSearchThroughAll(t *testing.T) {
	t.Parallel()
	const n = 64_000
	var all trackers
	keys := make([]workload.Key, n)
	for i := range keys {
		keys[i] = workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: fmt.Sprintf("workload-%d", i)}
		all = all.with(keys[i])
	}
	const rounds = 50
	searches, removals := make([]time.Duration, rounds), make([]time.Duration, rounds)
	for i := range rounds {
		began := time.Now()
		require.Equal(t, n/2+i, slices.Index(keys, keys[n/2+i]))
		searches[i] = time.Since(began)
	}
	const some = n / 2 / rounds
	for i := range rounds * some { // from the middle in both directions: neither end is near
		began := time.Now()
		all = all.without(keys[n/2+i])
		all = all.without(keys[n/2-1-i])
		removals[i/some] += time.Since(began)
	}
	require.Empty(t, all.keys)
	search, each := median(searches), median(removals)/(2*some)
	assert.Less(t, 5*each, search, "a removal takes %s, a search %s", each, search)
}

// median is a duration that the stalls of a busy machine do not change, since they are in a few of all.
func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
