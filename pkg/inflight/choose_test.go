package inflight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// There may be thousands of namespaces with waiting items, and each slot that is given back has them searched. What is behind the end of the
// search is no namespace here: to look at it panics.
func TestSearchForTheNextItemEndsAtTheFirstThatIsNext(t *testing.T) {
	t.Parallel()
	const last = share - 1
	for name, tc := range map[string]struct {
		total   int
		grants  uint64
		waiting []Class
		want    string
		ends    bool
	}{
		"no slot is free":                            {total: 1, waiting: []Class{Urgent}, ends: true},
		"no slot is free for the longest wait":       {total: 1, grants: last, waiting: []Class{Urgent}, ends: true},
		"an urgent one":                              {total: 2, waiting: []Class{Urgent}, want: "0", ends: true},
		"none is urgent":                             {total: 2, waiting: []Class{Retry, Background}, want: "1", ends: true},
		"all are retries":                            {total: 2, waiting: []Class{Retry, Retry}, want: "0", ends: true},
		"an urgent one waits somewhere else":         {total: 2, waiting: []Class{Background, Retry, Urgent}, want: "2", ends: true},
		"the longest wait may be that of a last one": {total: 2, grants: last, waiting: []Class{Urgent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := New(Options{Total: tc.total, Soon: time.Hour}, func(string) {})
			require.True(t, l.Enter("holds", "holds", Urgent), "all slots are free")
			for i, class := range tc.waiting {
				n := &namespace[string]{slots: 1}
				l.wait(&item[string]{key: string(rune('0' + i)), of: n}, class)
			}
			l.grants = tc.grants
			l.turns.PushBack(nil)
			if !tc.ends {
				assert.Panics(t, func() { l.choose() })
				return
			}
			var got string
			if it := l.choose(); it != nil {
				got = it.key
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// An item that waits no more does not have the rest searched for another one of its class.
func TestClassOfAnItemThatWaitsNoMoreDoesNotCount(t *testing.T) {
	t.Parallel()
	l := New(Options{Total: 1, Soon: time.Hour}, func(string) {})
	assert.Equal(t, classes, l.mostUrgent())
	require.True(t, l.Enter("shop", "holds", Urgent), "the only slot is free")
	for _, class := range []Class{Retry, Background} {
		require.False(t, l.Enter("shop", "web", class), "the only slot is taken")
		assert.Equal(t, class, l.mostUrgent(), "it is more urgent than before")
	}
	l.Leave("web") // it waits since this visit
	l.Leave("web")
	assert.Equal(t, classes, l.mostUrgent())
}
