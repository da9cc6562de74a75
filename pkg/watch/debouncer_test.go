package watch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func newDebouncer(t testing.TB, config watch.DebouncerConfig, callback func(stats watch.ChangeStats)) *watch.Debouncer {
	t.Helper()
	config.Callback = func(_ context.Context, stats watch.ChangeStats) error { callback(stats); return nil }
	debouncer, err := watch.NewDebouncer(config)
	require.NoError(t, err)
	return debouncer
}

var one = watch.ChangeStats{Modified: 1}

// Nothing runs before Run: so the flush comes certainly before the change.
func TestFlushDoesNotConcernLaterChanges(t *testing.T) {
	t.Parallel()
	flush := func(d *watch.Debouncer) { d.Flush() }
	cases := map[string]struct {
		config watch.DebouncerConfig
		flush  func(*watch.Debouncer)
		want   []string // after an hour, where the first callback is at once
	}{
		"within the interval":  {watch.DebouncerConfig{}, flush, []string{"+0 ~1 -0 after 0s", "+0 ~1 -0 after 5s"}},
		"during sync":          {watch.DebouncerConfig{InitialSync: true}, flush, nil},
		"at the end of a sync": {watch.DebouncerConfig{InitialSync: true, CallDuringSync: true}, (*watch.Debouncer).EndSync, []string{"+0 ~1 -0 after 0s", "+0 ~1 -0 after 5s"}},
		"without debouncing":   {watch.DebouncerConfig{Interval: watch.NoDebounce}, flush, []string{"+0 ~1 -0 after 0s", "+0 ~1 -0 after 0s"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				began := time.Now()
				var debouncer *watch.Debouncer
				first := true
				debouncer = newDebouncer(t, c.config, func(stats watch.ChangeStats) {
					calls.add("%s after %s", stats, time.Since(began))
					if first {
						first = false
						c.flush(debouncer) // nothing is pending
						debouncer.Record(one)
					}
				})
				if c.want == nil { // no callback: flush before
					c.flush(debouncer)
				}
				debouncer.Record(one)
				go debouncer.Run(t.Context())
				pass(time.Hour)
				assert.Equal(t, append([]string{}, c.want...), calls.read())
			})
		})
	}
}

func TestDebouncingSwitchedOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t, object("a"), object("b"))
		bulk := startBulk(t, s, watch.Config{DebounceInterval: watch.NoDebounce, OnChange: calls.timed()})
		assert.Equal(t, []string{"+2 ~0 -0 after 0s"}, calls.read(), "the initial sync is one change")
		for range 3 {
			s.Update(object("a"))
			synctest.Wait()
			assert.Equal(t, []string{"+0 ~1 -0 after 0s"}, calls.read())
		}
		assert.Equal(t, "1005", bulk.Store().Object("default", "a").GetResourceVersion())
	})
}

func TestWithoutDebouncingAFreeCallbackIsAwaited(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		began := time.Now()
		debouncer := newDebouncer(t, watch.DebouncerConfig{Interval: watch.NoDebounce}, func(stats watch.ChangeStats) {
			calls.add("%s after %s", stats, time.Since(began))
			<-time.After(time.Minute)
		})
		go debouncer.Run(t.Context())
		for range 4 {
			debouncer.Record(one)
			pass(time.Second)
		}
		pass(time.Hour)
		assert.Equal(t, []string{"+0 ~1 -0 after 0s", "+0 ~3 -0 after 1m0s"}, calls.read())
	})
}

// The interval goes on while OnSyncComplete runs.
func TestSlowOnSyncCompleteDoesNotExtendTheInterval(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		note := calls.timed()
		s := newServer(t, object("a"))
		startBulk(t, s, watch.Config{
			CallOnChangeDuringSync: true,
			OnObject: func(before, _ *unstructured.Unstructured) {
				if before == nil {
					<-time.After(time.Second) // the sync ends then, with nothing pending
				}
			},
			OnChange: func(ctx context.Context, store watch.Reader, stats watch.ChangeStats) error {
				err := note(ctx, store, stats)
				if stats.IsInitialSync {
					<-time.After(3 * time.Second)
				}
				return err
			},
			OnSyncComplete: func(context.Context, watch.Reader, int) error { <-time.After(10 * time.Second); return nil },
		})
		pass(2 * time.Second)
		s.Update(object("a"))
		pass(time.Hour)
		assert.Equal(t, []string{"+1 ~0 -0 after 0s", "+0 ~1 -0 after 13s"}, calls.read())
	})
}

func TestRunAfterAnotherDeliversWhatIsPending(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		debouncer := newDebouncer(t, watch.DebouncerConfig{}, func(stats watch.ChangeStats) { calls.add("%s", stats) })
		ctx, cancel := context.WithCancel(t.Context())
		go debouncer.Run(ctx)
		debouncer.Record(one)
		synctest.Wait()
		assert.Equal(t, []string{"+0 ~1 -0"}, calls.read())
		debouncer.Record(one)
		synctest.Wait()
		cancel()
		pass(time.Minute)
		assert.Empty(t, calls.read())
		debouncer.Record(one)
		go debouncer.Run(t.Context())
		synctest.Wait()
		assert.Equal(t, []string{"+0 ~2 -0"}, calls.read())
	})
}

func TestRunWaitsForTheEndOfAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		debouncer := newDebouncer(t, watch.DebouncerConfig{Interval: watch.NoDebounce}, func(stats watch.ChangeStats) {
			calls.add("begin %s", stats)
			<-time.After(time.Minute)
			calls.add("end")
		})
		ctx, cancel := context.WithCancel(t.Context())
		go debouncer.Run(ctx)
		debouncer.Record(one)
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		debouncer.Run(ended)
		go debouncer.Run(t.Context())
		debouncer.Record(one)
		cancel()
		pass(59 * time.Second)
		assert.Equal(t, []string{"begin +0 ~1 -0"}, calls.read())
		pass(2 * time.Minute)
		assert.Equal(t, []string{"end", "begin +0 ~1 -0", "end"}, calls.read(), "calls do not overlap")
	})
}
