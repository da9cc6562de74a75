package stamp

import (
	"errors"
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

// The rejections of a row.
const (
	conflict   = "conflict"
	unverified = "unverified"
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
	// reject is conflict or unverified, empty if the write passes.
	reject string
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
			if r.reject != "" {
				if assert.NotNil(t, rejection, "it passes") {
					assert.Equal(t, r.reject == conflict, rejection.Conflict)
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

func (w *world) bound(given string) string { return digest.Bind(given, w.object().Generation()) }
