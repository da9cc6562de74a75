package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

func TestRule1LeaveAlone(t *testing.T) {
	t.Parallel()
	judge(t, RuleExcluded, map[string]row{
		"opting out restarts nothing, and what was known is forgotten": {
			write: (*world).optOut,
			hash:  kept, record: written, last: kept,
		},
		"by a manifest without any of our keys, neither": {
			write: both((*world).optOut, (*world).forget),
			hash:  kept, record: written, last: kept,
		},
		"a release keeps the hash that it has": {
			write: both((*world).optOut, release),
			hash:  kept, record: written, last: kept,
		},
		"a release of a manifest without a hash does not remove it": {
			write: both(both((*world).optOut, (*world).forget), release),
			hash:  kept, record: written, last: kept,
		},
		"a release of a controller, whose template it is, removes it": {
			write: both(both((*world).optOut, (*world).forget), both(controlled, release)),
			hash:  gone, record: written, last: kept,
		},
		"a controller copies the hash of its own template": {
			write: both(both((*world).optOut, controlled), func(w *world, raw map[string]any) { w.setManaged(raw, Hash, "x") }),
			hash:  "x", record: written, last: kept,
		},
		"a controller that knows of no hash does not remove it": {
			write: both(both((*world).optOut, (*world).forget), controlled),
			hash:  kept, record: written, last: kept,
		},
		"a controller does not decide about a workload that asks for its own": {
			write: both(both((*world).ignore, controlled), func(w *world, raw map[string]any) { w.setManaged(raw, Hash, "x") }),
			hash:  kept, record: kept, last: kept,
		},
		"a release of a controller does not decide about a workload that asks for its own, either": {
			since: changed, write: both(both((*world).ignore, (*world).forget), both(controlled, release)),
			hash: kept, record: written, last: kept,
		},
		"a release of a controller does not decide about one that asks for what cannot be tracked": {
			write: both(both(func(w *world, raw map[string]any) {
				annotate(raw, w.keys.ConfigMaps, "Not A Name")
				annotate(raw, w.keys.Secrets, "")
			}, (*world).forget), both(controlled, release)),
			hash: kept, record: written, last: kept,
		},
		"a label and a release of a manifest without a hash": {
			since: changed, write: both(both((*world).ignore, (*world).forget), release),
			hash: kept, record: written, last: kept,
		},
		"a label and a release of another hash, as rollout undo brings it": {
			write: both(both((*world).ignore, release), func(w *world, raw map[string]any) { w.setManaged(raw, Hash, "x") }),
			hash:  "x", record: written, last: kept,
		},
		"a label and a rollback to before the first stamp": {
			write: both(both((*world).ignore, (*world).forget), both(release, func(w *world, raw map[string]any) { w.setManaged(raw, Record, "v1:-::") })),
			hash:  gone, record: written, last: kept,
		},
		"a label: what is known stays": {
			since: changed, write: (*world).ignore,
			hash: kept, record: kept, last: kept,
		},
		"a label, by a manifest without our annotations, and no read": {
			since: unread, write: both((*world).ignore, (*world).forget),
			hash: kept, record: kept, last: kept,
		},
		"a label and a release: what the pods start with is recorded": {
			since: changed, write: both((*world).ignore, release),
			hash: kept, record: written, last: kept,
		},
		"a label and a release, but the state cannot be read: nothing is known": {
			since: unread, write: both((*world).ignore, release),
			hash: kept, record: written, last: kept, warning: "the API server is down",
		},
		"managed annotations written by hand": {
			write: both((*world).ignore, func(w *world, raw map[string]any) {
				w.setManaged(raw, Hash, "x")
				w.setManaged(raw, Restart, "7")
				w.setManaged(raw, LastReload, "x")
			}),
			hash: kept, record: kept, last: kept,
		},
		"a Record that a newer version wrote is not replaced": {
			since: func(w *world) {
				w.away = true
				w.write(func(raw map[string]any) { w.setManaged(raw, Record, "v2:x") })
				w.away = false
			},
			write: both((*world).ignore, release),
			hash:  kept, record: kept, last: kept,
		},
		"a dummy that was stored already is taken away: no word about it": {
			since: func(w *world) {
				w.away = true
				w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, "x") })
				w.away = false
			},
			write: both((*world).ignore, func(w *world, raw map[string]any) { w.setManaged(raw, Dummy, "") }),
			hash:  kept, record: kept, last: kept,
		},
		"a dummy is purged, not verified": {
			since: unread, write: both((*world).optOut, dummyOf(func(*world) string { return "x" })),
			hash: kept, record: written, last: kept, warning: "removed this reload request",
		},
	})
}

func TestRule2StampNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since   func(*world)
		managed Managed
		stamped bool
		warning string
	}{
		"a new workload": {stamped: true},
		"managed annotations of another workload": {managed: Managed{Hash: "x", Restart: "7", Record: "v2:x", Dummy: "x", LastReload: "x"}, stamped: true},
		"a listed object does not exist":          {since: func(w *world) { w.remove(cm("a")) }, stamped: true, warning: "configmap/a"},
		"the state cannot be read":                {since: unread, warning: "the API server is down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(cm("a"), "A")
			w.set(secret("a"), "A")
			if c.since != nil {
				c.since(w)
			}
			raw := w.manifest(w.lists("a", "a"))
			for key, value := range c.managed {
				w.setManaged(raw, key, value)
			}
			assert.Nil(t, w.create(raw))
			assert.Equal(t, RuleCreate, w.result.Rule)
			managed := w.managed()
			if c.stamped {
				assert.Equal(t, w.hash(), managed[Hash])
				assert.Contains(t, managed[Record], "configmap/a=")
				managed = managed.Without(Hash, Record)
			}
			assert.Empty(t, managed, "nothing else")
			assert.Contains(t, strings.Join(w.result.Warnings, "\n"), c.warning)
		})
	}
}

// A stale dummy is purged whatever rule follows.
func TestRule3StaleDummy(t *testing.T) {
	t.Parallel()
	stored := func(w *world) {
		w.away = true // a webhook would have purged it
		w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, "stored") })
		w.away = false
	}
	judge(t, RuleNothing, map[string]row{
		"one that was stored already": {
			since: stored, write: scaled,
			hash: kept, record: kept, last: kept,
		},
		"one for another generation, right or wrong": {
			since: changed, write: dummyOf(func(w *world) string { return w.hash() + "@77" }),
			hash: kept, record: kept, last: kept, warning: "stale",
		},
	})
	judge(t, RuleTemplateChanged, map[string]row{
		"kubectl set image where one is stored": {
			since: func(w *world) { stored(w); changed(w) }, write: release,
			hash: written, record: written, last: written,
		},
	})
	judge(t, RuleVerifiedReload, map[string]row{
		"one that rollout undo brings back": {
			since: changed, write: both(release, dummyOf(func(*world) string { return "old" })),
			hash: written, record: written, last: written,
		},
		"one that rollout undo brings back while the state cannot be read": {
			since: func(w *world) { changed(w); unread(w) }, write: both(release, dummyOf(func(*world) string { return "old" })),
			hash: kept, record: kept, last: kept, warning: "the API server is down",
		},
		"one that rollout undo brings back with our annotations alone, while the state cannot be read": {
			since: unread,
			write: both(func(w *world, raw map[string]any) { w.setManaged(raw, Hash, "old") }, dummyOf(func(*world) string { return "old" })),
			hash:  kept, record: kept, last: kept, warning: "the API server is down",
		},
		"one that rollout undo brings back, and only our annotations of the template differ": {
			write: both(func(w *world, raw map[string]any) { w.setManaged(raw, Hash, "old") }, dummyOf(func(*world) string { return "old" })),
			hash:  kept, record: kept, last: kept, warning: "restored",
		},
	})
}

func TestRule4Verify(t *testing.T) {
	t.Parallel()
	judge(t, RuleVerifiedReload, map[string]row{
		"right, and due": {
			since: changed, write: dummyOf((*world).hash),
			hash: written, record: written, last: written,
		},
		"right, and due, for this generation": {
			since: changed, write: dummyOf(func(w *world) string { return w.bound(w.hash()) }),
			hash: written, record: written, last: written,
		},
		"whatever is read live, and due": {
			since: changed, write: dummyOf(func(w *world) string { return w.bound(digest.AnyCurrent) }),
			hash: written, record: written, last: written,
		},
		"right, but the pods have it already": {
			write: dummyOf((*world).hash),
			hash:  kept, record: kept, last: kept,
		},
		"whatever is read live, but the pods have it already": {
			write: dummyOf(func(w *world) string { return w.bound(digest.AnyCurrent) }),
			hash:  kept, record: kept, last: kept,
		},
		"right, but held": {
			since: held, write: dummyOf((*world).hash),
			hash: kept, record: kept, last: kept,
		},
		"right, in a release": {
			since: changed, write: both(release, dummyOf((*world).hash)),
			hash: written, record: written, last: written,
		},
		"right, with a list that is edited": {
			write: both(func(w *world, raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,b") }, dummyOf(func(w *world) string {
				view := w.view()
				view.Intent.Tracked[cm("b")] = every
				return w.hashOf(view)
			})),
			hash: written, record: written, last: written,
		},
		"wrong": {
			since: changed, write: dummyOf(func(*world) string { return "0000" }),
			hash: kept, record: kept, last: kept, reject: conflict,
		},
		"wrong in a release, for this generation": {
			since: changed, write: both(release, dummyOf(func(w *world) string { return w.bound("0000") })),
			hash: kept, record: kept, last: kept, reject: conflict,
		},
		"whatever is read live, for no generation": {
			since: changed, write: dummyOf(func(*world) string { return digest.AnyCurrent }),
			hash: kept, record: kept, last: kept, reject: conflict,
		},
		"cannot be verified": {
			since: unread, write: dummyOf((*world).hash),
			hash: kept, record: kept, last: kept, reject: unverified,
		},
		"cannot be verified in a release, for this generation": {
			since: unread, write: both(release, dummyOf(func(w *world) string { return w.bound(w.hash()) })),
			hash: kept, record: kept, last: kept, reject: unverified,
		},
	})
}
