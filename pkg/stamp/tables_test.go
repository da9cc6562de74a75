package stamp

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// fate is what a write makes of a managed annotation.
type fate string

const (
	kept    fate = "kept"    // as it was before the write, absence included
	gone    fate = "gone"    // not there
	written fate = "written" // there, and another one than before
)

// row is one write and what becomes of it. The workload has its managed annotations, the last reload among them.
type row struct {
	// since happens before the write, without the loop looking.
	since func(*world)
	// write is what is written.
	write func(w *world, raw map[string]any)

	hash, record, last fate
	// restart is written rarely: empty is gone.
	restart fate
	// reject is the status of a rejection, 0 if the write passes.
	reject int32
	// warning is part of what the user reads; "" if nothing is.
	warning string
}

// judge makes the write of each row and compares.
func judge(t *testing.T, rule Rule, rows map[string]row) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.set(cm("a"), "A again")
			w.quiesce()
			if r.since != nil {
				r.since(w)
			}
			before := w.managed()
			rejection := w.write(func(raw map[string]any) { r.write(w, raw) })
			assert.Equal(t, rule, w.result.Rule)
			if r.reject != 0 {
				if assert.NotNil(t, rejection, "it passes") {
					assert.Equal(t, r.reject, rejection.Code)
				}
			} else {
				assert.Nil(t, rejection)
			}
			if r.restart == "" {
				r.restart = gone
			}
			for key, want := range map[Key]fate{Hash: r.hash, Restart: r.restart, Record: r.record, LastReload: r.last, Dummy: gone} {
				assertFate(t, key, want, before, w.managed())
			}
			if r.hash == written {
				assert.Equal(t, w.hash(), w.managed()[Hash], "a stamp is that of the live state")
			}
			if rec, err := record.Parse(w.managed()[Record]); !errors.Is(err, record.ErrNewer) {
				assert.True(t, rec.BelongsTo(w.managed()[Hash]), "no void Record is left")
			}
			warnings := strings.Join(w.result.Warnings, "\n")
			if r.warning == "" {
				assert.Empty(t, warnings)
			}
			assert.Contains(t, warnings, r.warning)
		})
	}
}

func assertFate(t *testing.T, key Key, want fate, before, after Managed) {
	t.Helper()
	switch want {
	case kept:
		assert.True(t, after.same(before, key), "%s: it was %q and is %q", key, before[key], after[key])
	case gone:
		assert.NotContains(t, after, key, "%s", key)
	case written:
		assert.NotEmpty(t, after[key], "%s", key)
		assert.NotEqual(t, before[key], after[key], "%s", key)
	default:
		assert.Equal(t, string(want), after[key], "%s", key)
	}
}

func (w *world) optOut(raw map[string]any) {
	annotate(raw, w.keys.ConfigMaps, "")
	annotate(raw, w.keys.Secrets, "")
}

// forget takes all our annotations off, as a manifest does that knows nothing of them.
func (w *world) forget(raw map[string]any) {
	for _, s := range managedKeys {
		w.setManaged(raw, s.key, "")
	}
}

// ignore sets the label that excludes.
func (w *world) ignore(raw map[string]any) {
	raw["metadata"].(map[string]any)["labels"] = map[string]any{w.keys.IgnoredLabel: "true"}
}

// controlled makes another object the workload's controller.
func controlled(_ *world, raw map[string]any) {
	raw["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "example.com/v1", "kind": "Owner", "name": "owner", "uid": "1", "controller": true,
	}}
}

func changed(w *world)                     { w.set(cm("a"), "changed") }
func unread(w *world)                      { w.unreadable = true }
func scaled(_ *world, raw map[string]any)  { raw["spec"].(map[string]any)["replicas"] = 5.0 }
func release(_ *world, raw map[string]any) { setImage("image:2")(raw) }

// adopted opts in through the other dialect, which adds configmap/b to the Record.
func adopted(w *world) {
	w.write(func(raw map[string]any) { annotate(raw, autoKey, "true") })
}

// untracked adopts configmap/b and tracks it no more. Its item stays in the Record, since the pods do.
func untracked(w *world) {
	adopted(w)
	w.write(func(raw map[string]any) { annotate(raw, autoKey, "") })
}

// held has an object that the pods need deleted, and another one changed.
func held(w *world) {
	adopted(w)
	w.write(func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,b") })
	w.remove(cm("b"))
	changed(w)
}

// both does one thing after the other.
func both(first, second func(*world, map[string]any)) func(*world, map[string]any) {
	return func(w *world, raw map[string]any) {
		first(w, raw)
		second(w, raw)
	}
}

func dummyOf(value func(*world) string) func(*world, map[string]any) {
	return func(w *world, raw map[string]any) { w.setManaged(raw, Dummy, value(w)) }
}

func (w *world) bound(digest string) string {
	return digest + "@" + strconv.FormatInt(w.object().Generation(), 10)
}

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
			since: changed, write: dummyOf(func(w *world) string { return w.bound(digest.Live) }),
			hash: written, record: written, last: written,
		},
		"right, but the pods have it already": {
			write: dummyOf((*world).hash),
			hash:  kept, record: kept, last: kept,
		},
		"whatever is read live, but the pods have it already": {
			write: dummyOf(func(w *world) string { return w.bound(digest.Live) }),
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
			hash: kept, record: kept, last: kept, reject: http.StatusConflict,
		},
		"wrong in a release, for this generation": {
			since: changed, write: both(release, dummyOf(func(w *world) string { return w.bound("0000") })),
			hash: kept, record: kept, last: kept, reject: http.StatusConflict,
		},
		"whatever is read live, for no generation": {
			since: changed, write: dummyOf(func(*world) string { return digest.Live }),
			hash: kept, record: kept, last: kept, reject: http.StatusConflict,
		},
		"cannot be verified": {
			since: unread, write: dummyOf((*world).hash),
			hash: kept, record: kept, last: kept, reject: http.StatusServiceUnavailable,
		},
		"cannot be verified in a release, for this generation": {
			since: unread, write: both(release, dummyOf(func(w *world) string { return w.bound(w.hash()) })),
			hash: kept, record: kept, last: kept, reject: http.StatusServiceUnavailable,
		},
	})
}
