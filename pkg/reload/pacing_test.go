package reload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestReloadFromTheFutureDelaysTheNextOneOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLoop(loopDependencies{}, Options{Now: func() time.Time { return now }, Refractory: 5 * time.Second})
	last := record.LastReload{Time: now.Add(time.Hour), Hash: "abc", Cause: record.CauseConfigChange}
	s := gather.Subject{Key: workload.Key{Name: "web"}, View: stamp.View{Managed: stamp.Managed{stamp.Hash: "abc", stamp.LastReload: last.String()}}}
	l.state.Reports.Observe(s.Key, last.String(), now)
	wait, gate := l.pacing.gates.Wait(l.pacing.input(s))
	assert.Equal(t, 5*time.Second, wait, "a time in the future counts as now")
	assert.Equal(t, "refractory", gate)
	now = now.Add(5 * time.Second)
	wait, _ = l.pacing.gates.Wait(l.pacing.input(s))
	assert.Zero(t, wait, "but only once: the clock of the replica that wrote it may be wrong by hours")
}

// A release that tracks another object is stamped without an explanation: the last reload is then that of the template before.
func TestRefractoryTimeCountsFromTheReloadOfAnEarlierTemplate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, last := range map[string]string{
		"another hash": record.LastReload{Time: now.Add(-time.Second), Hash: "before"}.String(),
		"no hash":      record.LastReload{Time: now.Add(-time.Second)}.String(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(loopDependencies{}, Options{Now: func() time.Time { return now }, Refractory: 5 * time.Second})
			s := gather.Subject{Key: workload.Key{Name: "web"}, View: stamp.View{Managed: stamp.Managed{stamp.Hash: "abc", stamp.LastReload: last}}}
			assert.Equal(t, 4*time.Second, l.pacing.gates.RefractoryWait(l.pacing.input(s)))
		})
	}
}

// What rollout undo leaves of a reload by a clock that was ahead: its time is always in the future, and no template bears its stamp.
func TestReloadInTheFutureThatNoTemplateBearsDelaysNothing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLoop(loopDependencies{}, Options{Now: func() time.Time { return now }, Refractory: 5 * time.Second})
	last := record.LastReload{Time: now.Add(time.Hour), Hash: "abc"}.String()
	s := gather.Subject{Key: workload.Key{Name: "web"}, View: stamp.View{Managed: stamp.Managed{stamp.LastReload: last}}}
	assert.Zero(t, l.pacing.gates.RefractoryWait(l.pacing.input(s)))
}

// An alert on the age must not fire for a wait that --refractory asks for.
func TestReloadIsDueFromTheEndOfTheRefractoryTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		refractory, last time.Duration
		want             time.Duration
	}{
		"change within it":                        {30 * time.Minute, 20 * time.Minute, -10 * time.Minute},
		"the refractory time has ended meanwhile": {30 * time.Minute, 31 * time.Minute, time.Minute},
		"change after it":                         {30 * time.Minute, 40 * time.Minute, 5 * time.Minute},
		"no refractory time":                      {0, time.Minute, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(loopDependencies{}, Options{Now: func() time.Time { return now }, Refractory: tc.refractory})
			last := record.LastReload{Time: now.Add(-tc.last), Hash: "abc", Cause: record.CauseConfigChange}
			s := gather.Subject{Key: workload.Key{Name: "web"}}
			s.View.Managed = stamp.Managed{stamp.Hash: "abc", stamp.LastReload: last.String()}
			s.Events.First = now.Add(-5 * time.Minute)
			l.pacing.postpone(t.Context(), s, policy.Assessment{MayReload: true})
			since, due := l.state.Due.Oldest()
			assert.Equal(t, 1, due)
			assert.Equal(t, tc.want, now.Sub(since))
		})
	}
}

// An attempt at the start of a leader finds what has changed before: since when is not known.
func TestReloadWithoutAnEventIsDueFromNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct{ first, want time.Time }{
		"no event":          {want: now},
		"an event was seen": {first: now.Add(-time.Minute), want: now.Add(-time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(loopDependencies{}, Options{Now: func() time.Time { return now }})
			s := gather.Subject{Key: workload.Key{Name: "web"}}
			s.Events.First = tc.first
			l.pacing.due(s)
			since, _ := l.state.Due.Oldest()
			assert.Equal(t, tc.want, since)
		})
	}
}

// changing is a Store whose content changes while it is read.
type changing struct {
	reloadtest.Store
	reading func()
}

func (c *changing) ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	c.reading()
	return c.Store.ReadIfChanged(ctx, namespace, refs)
}

// A read takes long, and finds what has changed since it began: that is given the time to settle, too.
func TestChangeThatComesWhileTheConfigurationIsReadSettles(t *testing.T) {
	t.Parallel()
	c := newChangingLoop(t)
	c.change()
	c.time = c.time.Add(time.Second)
	c.store.reading = func() {
		c.time = c.time.Add(100 * time.Millisecond)
		c.change()
	}
	assert.Equal(t, time.Second, c.attempt(t))
	assert.Zero(t, c.writes.writes)

	c.time = c.time.Add(3*time.Second + 900*time.Millisecond)
	c.attempt(t)
	assert.Equal(t, 1, c.writes.writes, "the longest time is over: a change that comes now puts off nothing")
}

// changingLoop is a loop with one workload whose ConfigMap may change while it is read.
type changingLoop struct {
	*loop
	time   time.Time
	key    workload.Key
	store  *changing
	writes *refusing
	id     string
}

func newChangingLoop(t *testing.T) *changingLoop {
	t.Helper()
	app := reference.Ref{Kind: reference.ConfigMap, Name: "app"}
	ring := digesttest.Ring(t, "a")
	newest, _ := ring.Newest()
	c := &changingLoop{
		time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), key: workload.Key{Namespace: "shop", Name: "web"},
		store: &changing{reading: func() {}}, writes: &refusing{}, id: string(newest.ID),
	}
	c.store.States = map[reference.Ref]digest.State{app: digest.StateOf(digest.Content{Ref: app, Namespace: "shop"}, "uid", "2", ring)}
	c.loop = newLoop(loopDependencies{
		client: c.writes, Dependencies: Dependencies{Events: &reloadtest.Outbox{}, Store: c.store, Keys: &reloadtest.Keys{Present: ring}},
	}, Options{Webhook: true, Settle: time.Second, SettleMax: 5 * time.Second, Now: func() time.Time { return c.time }})
	return c
}

func (c *changingLoop) change() { c.state.Changes.EventArrived(c.key, c.time) }

func (c *changingLoop) attempt(t *testing.T) time.Duration {
	t.Helper()
	s := gather.Subject{Key: c.key, View: reloadtest.View(t), Events: c.state.Changes.BeginAttempt(c.key)}
	s.View.Managed = stamp.Managed{stamp.Record: "v1:-:" + c.id + ":configmap/app=0123456789abcdef"}
	return c.actions.Close(t.Context(), c.decide(t.Context(), s)).RequeueAfter
}

// An attempt at the start of a leader begins without an event: what changes while it reads settles as well.
func TestChangeSettlesThatAnAttemptWithoutAnEventReads(t *testing.T) {
	t.Parallel()
	c := newChangingLoop(t)
	c.store.reading = c.change
	assert.Equal(t, time.Second, c.attempt(t))
	assert.Zero(t, c.writes.writes)
}
