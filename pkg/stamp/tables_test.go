package stamp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// fate is what a write makes of a mark.
type fate string

const (
	kept    fate = "kept"    // as it was before the write, absence included
	gone    fate = "gone"    // not there
	written fate = "written" // there, and another one than before
)

// row is one write and what becomes of it. The workload has its marks, the last reload among them.
type row struct {
	// since happens before the write, without the loop looking.
	since func(*world)
	// write is what somebody writes.
	write func(w *world, raw map[string]any)

	hash, record, baseline, last fate
	// reject is the status of a rejection, 0 if the write passes.
	reject int32
	// warning is part of what the user is told; "" if nothing is.
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
			before := w.marks()
			rejection := w.write(func(raw map[string]any) { r.write(w, raw) })
			assert.Equal(t, rule, w.result.Rule)
			if r.reject != 0 {
				if assert.NotNil(t, rejection, "it passes") {
					assert.Equal(t, r.reject, rejection.Code)
				}
			} else {
				assert.Nil(t, rejection)
			}
			for slot, want := range map[Slot]fate{Hash: r.hash, Record: r.record, Baseline: r.baseline, LastReload: r.last, Dummy: gone} {
				assertFate(t, slot, want, before, w.marks())
			}
			if r.hash == written {
				assert.Equal(t, w.hash(), w.marks()[Hash], "a stamp is that of the live state")
			}
			told := strings.Join(w.result.Warnings, "\n")
			if r.warning == "" {
				assert.Empty(t, told)
			}
			assert.Contains(t, told, r.warning)
		})
	}
}

func assertFate(t *testing.T, slot Slot, want fate, before, after Marks) {
	t.Helper()
	switch want {
	case kept:
		assert.True(t, after.same(before, slot), "%s: it was %q and is %q", slot, before[slot], after[slot])
	case gone:
		assert.NotContains(t, after, slot, "%s", slot)
	case written:
		assert.NotEmpty(t, after[slot], "%s", slot)
		assert.NotEqual(t, before[slot], after[slot], "%s", slot)
	}
}

func (w *world) optOut(raw map[string]any) {
	annotate(raw, w.keys.ConfigMaps, "")
	annotate(raw, w.keys.Secrets, "")
}

// forget takes all our annotations off, as a manifest does that knows nothing of them.
func (w *world) forget(raw map[string]any) {
	for _, s := range slots {
		w.mark(raw, s.slot, "")
	}
}

func changed(w *world)          { w.set(cm("a"), "changed") }
func unread(w *world)           { w.unreadable = true }
func scaled(raw map[string]any) { raw["spec"].(map[string]any)["replicas"] = 5.0 }

// adopted opts in by the other dialect, which adds configmap/b to the Baseline.
func adopted(w *world) {
	w.write(func(raw map[string]any) { annotate(raw, autoKey, "true") })
}

func TestRule1LeaveAlone(t *testing.T) {
	t.Parallel()
	judge(t, RuleExcluded, map[string]row{
		"opting out restarts nothing": {
			write: (*world).optOut,
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
		"by a manifest without any of our keys, neither": {
			write: func(w *world, raw map[string]any) { w.optOut(raw); w.forget(raw) },
			hash:  kept, record: kept, baseline: gone, last: gone,
		},
		"the marks go with the next rollout": {
			write: func(w *world, raw map[string]any) { w.optOut(raw); setImage("image:2")(raw) },
			hash:  gone, record: gone, baseline: gone, last: kept,
		},
		"a Baseline goes": {
			since: adopted,
			write: func(w *world, raw map[string]any) { w.optOut(raw); annotate(raw, autoKey, "") },
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
		"a dummy is purged, nobody verifies it": {
			since: unread,
			write: func(w *world, raw map[string]any) { w.optOut(raw); w.mark(raw, Dummy, "x") },
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
	})
}

func TestRule2StampNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since   func(*world)
		marks   Marks
		stamped bool
		warning string
	}{
		"a new workload":                       {stamped: true},
		"marks that came along from elsewhere": {marks: Marks{Hash: "x", Record: "v1:x", Dummy: "x", Baseline: "x", LastReload: "x"}, stamped: true},
		"a listed object does not exist":       {since: func(w *world) { w.remove(cm("a")) }, stamped: true, warning: "configmap/a"},
		"the state cannot be read":             {since: unread, warning: "the API server is down"},
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
			for slot, value := range c.marks {
				w.mark(raw, slot, value)
			}
			assert.Nil(t, w.create(raw))
			assert.Equal(t, RuleCreate, w.result.Rule)
			marks := w.marks()
			if c.stamped {
				assert.Equal(t, w.hash(), marks[Hash])
				assert.Contains(t, marks[Record], "configmap/a=")
				marks = marks.Without(Hash, Record)
			}
			assert.Empty(t, marks, "nothing else")
			assert.Contains(t, strings.Join(w.result.Warnings, "\n"), c.warning)
		})
	}
}

// A stale dummy is purged whatever rule follows.
func TestRule3StaleDummy(t *testing.T) {
	t.Parallel()
	stored := func(w *world) {
		w.away = true // a webhook would have purged it
		w.write(func(raw map[string]any) { w.mark(raw, Dummy, "stored") })
		w.away = false
	}
	judge(t, RuleNothing, map[string]row{
		"one that was stored already": {
			since: stored,
			write: func(_ *world, raw map[string]any) { scaled(raw) },
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
		"one for another generation, right or wrong": {
			since: changed,
			write: func(w *world, raw map[string]any) { w.mark(raw, Dummy, w.hash()+"@77") },
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
	})
	judge(t, RuleTemplateChanged, map[string]row{
		"kubectl set image where one is stored": {
			since: func(w *world) { stored(w); changed(w) },
			write: func(_ *world, raw map[string]any) { setImage("image:2")(raw) },
			hash:  written, record: written, baseline: gone, last: written,
		},
	})
}

func TestRule4Verify(t *testing.T) {
	t.Parallel()
	dummy := func(value func(*world) string) func(*world, map[string]any) {
		return func(w *world, raw map[string]any) { w.mark(raw, Dummy, value(w)) }
	}
	judge(t, RuleVerifiedReload, map[string]row{
		"right, and due": {
			since: changed, write: dummy((*world).hash),
			hash: written, record: written, baseline: gone, last: written,
		},
		"right, and due, for this generation": {
			since: changed, write: dummy(func(w *world) string { return w.hash() + "@2" }),
			hash: written, record: written, baseline: gone, last: written,
		},
		"right, but the pods have it already": {
			write: dummy((*world).hash),
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
		"a stamp takes the Baseline along": {
			since: func(w *world) { adopted(w); changed(w) }, write: dummy((*world).hash),
			hash: written, record: written, baseline: gone, last: written,
		},
		"wrong": {
			since: changed, write: dummy(func(*world) string { return "0000" }),
			hash: kept, record: kept, baseline: kept, last: kept, reject: http.StatusConflict,
		},
		"cannot be verified": {
			since: unread, write: dummy((*world).hash),
			hash: kept, record: kept, baseline: kept, last: kept, reject: http.StatusServiceUnavailable,
		},
	})
}

func TestRule5StampRollout(t *testing.T) {
	t.Parallel()
	release := func(_ *world, raw map[string]any) { setImage("image:2")(raw) }
	judge(t, RuleTemplateChanged, map[string]row{
		"brings the configuration along": {
			since: changed, write: release,
			hash: written, record: written, baseline: gone, last: written,
		},
		"with the configuration that it had": {
			write: release,
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
		"what was adopted is recorded": {
			since: adopted, write: release,
			hash: written, record: written, baseline: gone, last: gone,
		},
		"by a manifest that knows nothing of our marks": {
			since: changed, write: func(w *world, raw map[string]any) { w.forget(raw); setImage("image:2")(raw) },
			hash: written, record: written, baseline: gone, last: written,
		},
		"the state cannot be read: the old marks stay, the loop catches up": {
			since: func(w *world) { changed(w); unread(w) }, write: release,
			hash: kept, record: kept, baseline: gone, last: kept, warning: "the API server is down",
		},
	})
}

func TestRule5StampLists(t *testing.T) {
	t.Parallel()
	lists := func(configMaps string) func(*world, map[string]any) {
		return func(w *world, raw map[string]any) { annotate(raw, w.keys.ConfigMaps, configMaps) }
	}
	judge(t, RuleListsEdited, map[string]row{
		"one more": {
			write: lists("a,b"),
			hash:  written, record: written, baseline: gone, last: written,
		},
		"one less": {
			write: lists(""),
			hash:  written, record: written, baseline: gone, last: written,
		},
		"one that does not exist": {
			write: lists("a,typo"),
			hash:  written, record: written, baseline: gone, last: written, warning: "configmap/typo",
		},
		"the state cannot be read": {
			since: unread, write: lists("a,b"),
			hash: kept, record: kept, baseline: gone, last: kept, warning: "the API server is down",
		},
	})
}

// Judging marks that differ is TestStandOrRestore.
func TestRule6Restore(t *testing.T) {
	t.Parallel()
	judge(t, RuleMarksForgotten, map[string]row{
		"a PUT that knows none of them": {
			write: (*world).forget,
			hash:  kept, record: kept, baseline: gone, last: kept,
		},
		"also where a change is due: that is the loop's": {
			since: changed, write: (*world).forget,
			hash: kept, record: kept, baseline: gone, last: kept,
		},
		"a Baseline comes back": {
			since: adopted, write: (*world).forget,
			hash: kept, record: kept, baseline: kept, last: kept,
		},
		"one of them, and nobody can read": {
			since: unread, write: func(w *world, raw map[string]any) { w.mark(raw, Record, "") },
			hash: kept, record: kept, baseline: gone, last: kept,
		},
	})
}

func TestRule7Adopt(t *testing.T) {
	t.Parallel()
	optIn := func(_ *world, raw map[string]any) { annotate(raw, autoKey, "true") }
	judge(t, RuleAdopt, map[string]row{
		"opting in by the other dialect": {
			write: optIn,
			hash:  kept, record: kept, baseline: written, last: kept,
		},
		"a change that is due stays due": {
			since: changed, write: optIn,
			hash: kept, record: kept, baseline: written, last: kept,
		},
		"the state cannot be read": {
			since: unread, write: optIn,
			hash: kept, record: kept, baseline: gone, last: kept, warning: "the API server is down",
		},
	})
}

func TestRule8Nothing(t *testing.T) {
	t.Parallel()
	judge(t, RuleNothing, map[string]row{
		"a scale, and nobody can read": {
			since: unread, write: func(_ *world, raw map[string]any) { scaled(raw) },
			hash: kept, record: kept, baseline: gone, last: kept,
		},
		"a label where a change is due: that is the loop's": {
			since: changed,
			write: func(_ *world, raw map[string]any) {
				raw["metadata"].(map[string]any)["labels"] = map[string]any{"x": "y"}
			},
			hash: kept, record: kept, baseline: gone, last: kept,
		},
		"a Baseline stays": {
			since: adopted, write: func(_ *world, raw map[string]any) { scaled(raw) },
			hash: kept, record: kept, baseline: kept, last: kept,
		},
	})
}
