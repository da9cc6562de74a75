package fairlimit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

func TestCallerIsTheAddressWithoutThePort(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"10.0.0.1:443": "10.0.0.1", "[fd00::1]:443": "fd00::1", "@": "@", "": ""} {
		assert.Equal(t, want, fairlimit.CallerOf(address), address)
	}
}

// acquire begins work that must not have to wait.
func acquire(t *testing.T, l *fairlimit.Limit, tenant string, weight int) func() {
	t.Helper()
	before := l.Waiting()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var release func()
	go func() { release, _ = l.Acquire(ctx, tenant, weight) }()
	synctest.Wait()
	require.Equal(t, before, l.Waiting(), "it waits")
	require.NotNil(t, release)
	return release
}

// pass lets fake time pass. Timers of no duration that fire at the same time break the race detector of Go 1.26.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// work runs a piece of work that takes some time, and returns when it was done; 0 if its context ended first.
func work(ctx context.Context, l *fairlimit.Limit, tenant string, weight int, takes time.Duration) <-chan time.Time {
	done := make(chan time.Time, 1)
	go func() {
		release, err := l.Acquire(ctx, tenant, weight)
		if err != nil {
			done <- time.Time{}
			return
		}
		pass(takes)
		release()
		done <- time.Now()
	}()
	synctest.Wait() // so that arrivals have an order
	return done
}

func TestWorkWithinTheLimitDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(4, 3)
		for range 3 {
			acquire(t, l, "a", 1)
		}
		acquire(t, l, "b", 1)
		assert.Zero(t, l.Waiting())
	})
}

func TestTotalAndShareAreNeverExceeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const total, share = 7, 5
		l := fairlimit.New(total, share)
		inUse, most := map[string]int{}, map[string]int{}
		sum, mostOfAll := 0, 0
		turn := make(chan struct{}, 1)
		count := func(tenant string, weight int) {
			turn <- struct{}{}
			inUse[tenant] += weight
			sum += weight
			most[tenant], mostOfAll = max(most[tenant], inUse[tenant]), max(mostOfAll, sum)
			<-turn
		}
		for i := range 300 {
			tenant, weight := fmt.Sprint(i%3), i%4+1
			go func() {
				release, err := l.Acquire(t.Context(), tenant, weight)
				assert.NoError(t, err)
				count(tenant, weight)
				pass(time.Duration(i%5+1) * time.Millisecond)
				count(tenant, -weight)
				release()
			}()
		}
		pass(time.Minute)
		synctest.Wait()
		assert.Zero(t, l.Waiting(), "all was admitted")
		assert.Zero(t, sum)
		assert.Equal(t, total, mostOfAll, "what there is is used, and no more")
		for tenant, weight := range most {
			assert.LessOrEqual(t, weight, share, tenant)
		}
	})
}

func TestOneTenantsQueueDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(8, 8)
		began := time.Now()
		for range 16_000 {
			go func() {
				release, err := l.Acquire(t.Context(), "big", 1)
				assert.NoError(t, err)
				pass(time.Millisecond)
				release()
			}()
		}
		synctest.Wait()
		require.Equal(t, 16_000-8, l.Waiting())
		var small []<-chan time.Time
		for range 5 {
			small = append(small, work(t.Context(), l, "small", 1, time.Millisecond))
		}
		for _, done := range small {
			assert.LessOrEqual(t, (<-done).Sub(began), 4*time.Millisecond, "every second turn is the small one's")
		}
		pass(time.Minute)
		assert.Zero(t, l.Waiting(), "and the big one is served to the end")
	})
}

func TestWorkBeyondTheQueueIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.NewBounded(4, 3, 2)
		release := acquire(t, l, "a", 3)
		first := work(t.Context(), l, "a", 1, 0)
		second := work(t.Context(), l, "a", 1, 0)
		_, err := l.Acquire(t.Context(), "a", 1)
		require.ErrorIs(t, err, fairlimit.ErrFull)
		require.Equal(t, 2, l.Waiting())
		acquire(t, l, "b", 1)()

		release()
		assert.NotZero(t, <-first)
		assert.NotZero(t, <-second)
		acquire(t, l, "a", 3)()
		assert.Zero(t, l.Tenants())
	})
}

func TestWorkBeyondTheWeightThatMayWaitIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.NewWeighted(8, 4, 3)
		for range 2 { // what has begun, or has gone, waits no more
			release := acquire(t, l, "a", 4)
			first := work(t.Context(), l, "a", 4, 0) // one piece may, whatever its weight
			_, err := l.Acquire(t.Context(), "a", 1)
			require.ErrorIs(t, err, fairlimit.ErrFull)
			release()
			require.NotZero(t, <-first)

			release = acquire(t, l, "a", 4)
			going, leave := context.WithCancel(t.Context())
			gone := work(going, l, "a", 2, 0)
			second := work(t.Context(), l, "a", 1, 0)
			_, err = l.Acquire(t.Context(), "a", 1)
			require.ErrorIs(t, err, fairlimit.ErrFull)
			leave()
			require.Zero(t, <-gone)
			third := work(t.Context(), l, "a", 2, 0)
			_, err = l.Acquire(t.Context(), "a", 1)
			require.ErrorIs(t, err, fairlimit.ErrFull)
			acquire(t, l, "b", 4)()
			release()
			require.NotZero(t, <-second)
			require.NotZero(t, <-third)
		}
		assert.Zero(t, l.Tenants())
	})
}

func TestTenantsTakeTurnsInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(1, 1)
		release := acquire(t, l, "first", 1)
		var order []string
		for _, name := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
			go func() {
				release, err := l.Acquire(t.Context(), name[:1], 1)
				assert.NoError(t, err)
				order = append(order, name)
				release()
			}()
			synctest.Wait()
		}
		release()
		synctest.Wait()
		assert.Equal(t, []string{"a1", "b1", "c1", "a2", "b2", "a3"}, order)
	})
}

func TestTenantAtItsShareLeavesTheRestToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(4, 3)
		var hanging []func()
		for range 3 {
			hanging = append(hanging, acquire(t, l, "hangs", 1))
		}
		waiting := work(t.Context(), l, "hangs", 1, 0)
		require.Equal(t, 1, l.Waiting(), "its share is used up")
		for range 10 {
			acquire(t, l, "other", 1)()
		}
		hanging[0]()
		<-waiting
		assert.Zero(t, l.Waiting())
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(1, 1)
		release := acquire(t, l, "a", 1)
		ctx, cancel := context.WithCancel(t.Context())
		gone := []<-chan time.Time{work(ctx, l, "a", 1, 0), work(ctx, l, "b", 1, 0)}
		stays := work(t.Context(), l, "c", 1, 0)
		cancel()
		for _, done := range gone {
			assert.Zero(t, <-done)
		}
		synctest.Wait()
		assert.Equal(t, 1, l.Waiting(), "they have left the queue")
		release()
		assert.NotZero(t, <-stays, "the one behind them is next")

		_, err := l.Acquire(ctx, "a", 1)
		require.ErrorIs(t, err, context.Canceled, "nothing begins for a caller that has gone")
		acquire(t, l, "a", 1)
	})
}

// Otherwise a tenant whose callers give up, one after the other, would never get its turn.
func TestLeavingDoesNotLoseTheTenantsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(1, 1)
		release := acquire(t, l, "first", 1)
		ctx, cancel := context.WithCancel(t.Context())
		work(ctx, l, "a", 1, 0)
		patient := work(t.Context(), l, "a", 1, time.Second)
		other := work(t.Context(), l, "b", 1, time.Second)
		cancel()
		synctest.Wait()
		release()
		assert.True(t, (<-patient).Before(<-other), "the next turn is that of tenant a")
	})
}

// A heavy piece leaves the head of the queue: the pieces that it blocked begin.
func TestLeavingLetsLighterWorkBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(4, 4)
		acquire(t, l, "a", 2)
		ctx, cancel := context.WithCancel(t.Context())
		heavy := work(ctx, l, "b", 3, 0)
		light := work(t.Context(), l, "c", 1, 0)
		require.Equal(t, 2, l.Waiting(), "the heavy one is next")
		cancel()
		assert.Zero(t, <-heavy)
		assert.NotZero(t, <-light)
	})
}

func TestHeavyWorkIsNotOvertakenForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(4, 4)
		const takes = 10 * time.Millisecond
		for range 4 {
			work(t.Context(), l, "light", 1, takes)
			pass(time.Millisecond)
		}
		began := time.Now()
		heavy := work(t.Context(), l, "heavy", 4, 0)
		var light []<-chan time.Time
		for range 40 {
			pass(time.Millisecond)
			light = append(light, work(t.Context(), l, "light", 1, takes))
		}
		assert.LessOrEqual(t, (<-heavy).Sub(began), takes, "it begins when what was in flight before has ended")
		for _, done := range light {
			<-done
		}
	})
}

func TestWorkHeavierThanAShareCountsAsAShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(8, 6)
		release := acquire(t, l, "a", 1_000)
		acquire(t, l, "b", 2)
		release()
		acquire(t, l, "a", 1_000)
	})
}

// Within a tenant light work does not overtake heavy work either.
func TestOrderWithinATenantIsThatOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(8, 4)
		release := acquire(t, l, "a", 2)
		heavy := work(t.Context(), l, "a", 3, time.Second)
		light := work(t.Context(), l, "a", 1, 2*time.Second)
		assert.Equal(t, 2, l.Waiting(), "the light one would fit")
		release()
		assert.True(t, (<-heavy).Before(<-light), "the heavy one came first")
	})
}

// A caller may go at the moment at which its work is granted: then the work counts as done.
func TestGrantToACallerThatGoesIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := fairlimit.New(1, 1)
		for range 100 { // which of the two the caller sees first is drawn
			release := acquire(t, l, "a", 1)
			ctx, cancel := context.WithCancel(t.Context())
			gone := work(ctx, l, "a", 1, 0)
			release()
			cancel()
			<-gone
		}
		acquire(t, l, "a", 1)()
		assert.Zero(t, l.Tenants(), "a tenant without work is forgotten")
	})
}

// Grants and departures at the same time must not lose weight: afterwards all of it can be had again.
func TestRacingDeparturesLoseNothing(t *testing.T) {
	t.Parallel()
	l := fairlimit.New(3, 3)
	var running []chan struct{}
	for i := range 200 {
		done := make(chan struct{})
		running = append(running, done)
		go func() {
			defer close(done)
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Microsecond)
				if release, err := l.Acquire(ctx, fmt.Sprint(i%5), i%3+1); err == nil {
					release()
				}
				cancel()
			}
		}()
	}
	for _, done := range slices.Backward(running) {
		<-done
	}
	release, err := l.Acquire(t.Context(), "last", 3)
	require.NoError(t, err)
	release()
	assert.Zero(t, l.Waiting())
}

func BenchmarkAcquire(b *testing.B) {
	l := fairlimit.New(64, 48)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		release, err := l.Acquire(ctx, "namespace", 1)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
