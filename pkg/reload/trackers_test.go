package reload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestTrackersAreASet(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var all trackers
	want := map[Key]bool{}
	most := 0
	for step := range 20_000 {
		key := Key{Name: fmt.Sprint(random.IntN(60))}
		grows := random.IntN(60) < 40-step/1000*2 // many at first, none in the end
		switch {
		case grows && !want[key]:
			all, want[key] = all.with(key), true
		case !grows:
			all = all.without(key)
			delete(want, key)
		}
		most = max(most, len(all.keys))
		require.Len(t, all.keys, len(want))
		for _, k := range all.keys {
			require.True(t, want[k])
		}
	}
	assert.Greater(t, most, 2*few)
	assert.LessOrEqual(t, len(all.keys), few/2)
	assert.Nil(t, all.at, "a few take no map")
}

// crowded returns an index in which n workloads track one object.
func crowded(n int) (*index, []Key) {
	x := newIndex()
	app := []reference.Ref{{Kind: reference.ConfigMap, Name: "app"}}
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: fmt.Sprintf("workload-%d", i)}
		x.Set(keys[i], app)
	}
	return x, keys
}

// 10,000 workloads of one object that go one by one must not compare 10^8 keys: the time for each is the same however many
// there are.
func TestTimeOfAnEventIsIndependentOfTheNumberOfTrackers(t *testing.T) {
	t.Parallel()
	each := func(n int) time.Duration {
		var runs []time.Duration
		for range 3 {
			x, keys := crowded(n)
			began := time.Now()
			for i, key := range keys {
				x.Delete(keys[len(keys)-1-i])
				x.Set(key, nil)
			}
			runs = append(runs, time.Since(began)/time.Duration(n))
			require.Empty(t, x.Trackers("shop", reference.Ref{Kind: reference.ConfigMap, Name: "app"}))
		}
		return slices.Min(runs)
	}
	small, large := each(500), each(32_000)
	assert.Less(t, large, 25*max(small, time.Microsecond), "a search through all would take 64 times as long: %s and %s", small, large)
}
