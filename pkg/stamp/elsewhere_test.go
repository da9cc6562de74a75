package stamp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// besides are installations with the same digest key whose flags say that nothing of the workload is tracked, and where their webhooks are.
func besides(w *world) map[string][]Reader {
	off := Reader{Keys: w.keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: w.keys}}, Objects: w.reader.Objects, Strategy: w.reader.Strategy}
	return map[string][]Reader{
		"called after":                   {w.reader, off},
		"called before":                  {off, w.reader},
		"a replica with the other flags": {off},
	}
}

// Another installation, or a replica of this one with other flags, reads no annotation that asks for reloads. What this one has recorded and
// stamped stays.
func TestWorkloadOfAnotherInstallation(t *testing.T) {
	t.Parallel()
	change := func(content string) func(*hiding) { return func(h *hiding) { h.set(cm("b"), content); h.quiesce() } }
	label := func(h *hiding) { h.annotate("example.org/x", "y") }
	put := func(h *hiding) { require.Nil(h.t, h.put()) }
	release := func(h *hiding) { require.Nil(h.t, h.write(setImage("image:2"))) }
	adopt := func(h *hiding) { h.set(secret("a"), "A"); h.quiesce() }
	for name, tc := range map[string]struct {
		reason   string
		steps    []func(*hiding)
		restarts int
	}{
		"a change":              {"It restarts the pods once.", []func(*hiding){change("B")}, 1},
		"changes":               {"Each does.", []func(*hiding){change("B"), change("C")}, 2},
		"a PUT after a change":  {"The stamp stays.", []func(*hiding){change("B"), put, label}, 1},
		"a write before":        {"What is known stays.", []func(*hiding){label, put, change("B")}, 1},
		"a change and its undo": {"A stamp that the pods adopted came back.", []func(*hiding){adopt, change("B"), change("A")}, 2},
		"a change of what is adopted": {
			"The adoption stays.", []func(*hiding){adopt, func(h *hiding) { h.set(secret("a"), "B"); h.quiesce() }}, 1,
		},
		"a release, then a change": {"The pods of the release are known.", []func(*hiding){release, func(h *hiding) { h.quiesce() }, change("B")}, 2},
		"a change and a release":   {"The release brings it.", []func(*hiding){func(h *hiding) { h.set(cm("b"), "B"); release(h) }}, 1},
		"a label that excludes": {
			"What is known stays.", []func(*hiding){
				func(h *hiding) { require.Nil(h.t, h.write(func(raw map[string]any) { h.ignore(raw) })) }, change("B"), label,
				func(h *hiding) {
					require.Nil(h.t, h.write(func(raw map[string]any) { delete(raw["metadata"].(map[string]any), "labels") }))
				},
			}, 1,
		},
	} {
		for way := range besides(newHiding(t).world) {
			t.Run(way+": "+name, func(t *testing.T) {
				t.Parallel()
				h := newHiding(t)
				h.webhooks = besides(h.world)[way]
				for _, step := range tc.steps {
					step(h)
					h.quiesce()
				}
				h.at(t, tc.restarts, tc.reason)
				h.webhooks = nil
				h.at(t, tc.restarts, "the other one is gone")
				h.set(cm("b"), "D")
				h.at(t, tc.restarts+1, "the next change counts")
			})
		}
	}
}

func TestWorkloadThatIsCreatedBesideAnotherInstallation(t *testing.T) {
	t.Parallel()
	for way := range besides(newHiding(t).world) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			h.webhooks = besides(h.world)[way]
			require.Nil(t, h.create(h.manifest(map[string]string{"reloader.stakater.com/auto": "true"})))
			h.at(t, 0, "created")
			h.set(cm("b"), "B")
			h.at(t, 1, "a change")
		})
	}
}

// To take the annotations away opts out of all installations.
func TestOptingOutBesideAnotherInstallation(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"called after", "called before"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			h.webhooks = besides(h.world)[way]
			h.annotate("reloader.stakater.com/auto", "")
			rec, err := record.Parse(h.managed()[Record])
			require.NoError(t, err)
			assert.True(t, rec.Empty(), "what was known is forgotten")
			h.set(cm("b"), "B")
			h.annotate("reloader.stakater.com/auto", "true")
			h.at(t, 0, "opting in restarts nothing")
		})
	}
}

// The other installation reads the annotations, or none are needed, but it tracks nothing of the workload.
func TestWorkloadOfAnotherInstallationThatTracksLess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		begin func(*hiding)
		off   func(*annotation.Stakater)
	}{
		"no ConfigMaps and Secrets": {
			begin: func(*hiding) {},
			off:   func(d *annotation.Stakater) { d.Without = []reference.Kind{reference.ConfigMap, reference.Secret} },
		},
		"no workloads without annotations": {
			begin: func(h *hiding) {
				h.configure(func(d *annotation.Stakater) { d.AutoReloadAll = true })
				h.annotate("reloader.stakater.com/auto", "")
			},
			off: func(d *annotation.Stakater) { d.AutoReloadAll = false },
		},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, called first: %t", name, first), func(t *testing.T) {
				t.Parallel()
				h := newHiding(t)
				tc.begin(h)
				h.at(t, 0, "both track it")
				dialect, off := h.dialect, h.reader
				tc.off(&dialect)
				off.Dialects = []annotation.Dialect{annotation.SAP{Keys: h.keys}, dialect}
				h.webhooks = []Reader{h.reader, off}
				if first {
					h.webhooks = []Reader{off, h.reader}
				}
				h.set(cm("b"), "B")
				h.at(t, 1, "a change")
				h.set(cm("b"), "C")
				h.at(t, 2, "another change")
			})
		}
	}
}

// An annotation of Reloader takes the place of SAP's list, and the configuration changes: the release of that is due, whichever
// installation reads which.
func TestOtherDialectBesideAnotherInstallation(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"called after", "called before"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			require.Nil(t, h.write(func(raw map[string]any) {
				annotate(raw, "reloader.stakater.com/auto", "")
				annotate(raw, h.keys.ConfigMaps, "b")
			}))
			h.quiesce()
			restarts := h.restarts
			h.webhooks = besides(h.world)[way]
			h.set(cm("b"), "B")
			require.Nil(t, h.write(func(raw map[string]any) {
				annotate(raw, h.keys.ConfigMaps, "")
				annotate(raw, "reloader.stakater.com/auto", "true")
			}))
			h.at(t, restarts+1, "the change")
		})
	}
}

// No webhook answers the write that opts out. Any later one forgets what was known, as no annotation asks for reloads.
func TestOptingOutThatNoWebhookSeesIsRecordedLater(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]string{
		"no annotation is left":     "",
		"what is left asks nothing": "configmaps.exclude.reloader.stakater.com/reload",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			if left != "" {
				h.annotate(left, "other")
			}
			h.away = true
			h.annotate("reloader.stakater.com/auto", "")
			h.away = false
			h.annotate("example.org/x", "y")
			h.set(cm("b"), "B")
			h.annotate("reloader.stakater.com/auto", "true")
			h.at(t, 0, "opting in restarts nothing")
		})
	}
}

// The pods that are left of the first release have its content: the undo of the second one replaces them, whichever webhook is called first.
func TestUndoOfAReleaseBesideAnotherInstallation(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"called after", "called before"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			v1 := clone(t, h.stored)
			first := h.managed()[Hash]
			h.webhooks = besides(h.world)[way]
			h.set(cm("b"), "B")
			require.Nil(t, h.write(setImage("image:2")))
			require.Nil(t, h.write(func(raw map[string]any) { h.undoAs(raw, v1) }))
			h.quiesce()
			assert.NotEqual(t, first, h.managed()[Hash], "the template of the pods that have the old content")
		})
	}
}

// A request for a reload is left to the installation that has recorded objects. Without one, it is removed.
func TestRequestForAnotherInstallation(t *testing.T) {
	t.Parallel()
	bound := func(h *hiding) string { return h.bound("x") }
	nothing := func(*hiding) {}
	for name, tc := range map[string]struct {
		reason  string
		since   func(*hiding)
		request func(*hiding) string
		// asks: the annotations ask this installation.
		asks    bool
		left    bool
		warning string
	}{
		"new": {reason: "It is for the other one.", since: nothing, request: bound, left: true, warning: "left this reload request to another"},
		"for another generation": {
			reason: "It is stale.", since: nothing, request: func(*hiding) string { return "x@99" }, warning: "removed this reload request",
		},
		"of an excluded workload": {
			reason: "No installation handles it.", request: bound, warning: "removed this reload request",
			since: func(h *hiding) { require.Nil(h.t, h.write(func(raw map[string]any) { h.ignore(raw) })) },
		},
		"after opting out": {
			reason: "Nothing is recorded.", request: bound, warning: "removed this reload request",
			since: func(h *hiding) { h.annotate("reloader.stakater.com/auto", "") },
		},
		"of what is hidden for a time": {
			reason: "Another installation may not hide it.", request: bound, asks: true, left: true, warning: "left this reload request to another",
			since: func(h *hiding) {
				h.configure(func(d *annotation.Stakater) { d.Without = []reference.Kind{reference.ConfigMap, reference.Secret} })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			tc.since(h)
			if !tc.asks {
				h.webhooks = besides(h.world)["a replica with the other flags"]
			}
			request := tc.request(h)
			require.Nil(t, h.write(func(raw map[string]any) { h.setManaged(raw, Dummy, request) }))
			assert.Equal(t, RuleExcluded, h.result.Rule)
			require.Len(t, h.result.Warnings, 1)
			assert.Contains(t, h.result.Warnings[0], tc.warning)
			_, left := h.managed()[Dummy]
			assert.Equal(t, tc.left, left, tc.reason)
			h.annotate("example.org/x", "y")
			assert.NotContains(t, h.managed(), Dummy, "the next write removes a stale one")
		})
	}
}

// A hand edit explains no reload of this version: the stored annotations are put back.
func TestStampThatNoInstallationHasMade(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age        time.Duration
		generation int64
		kept       bool
	}{
		"just now":                     {kept: true},
		"for an earlier generation":    {generation: -1},
		"from before its own creation": {age: 2 * time.Hour, generation: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHiding(t)
			h.rv += 7200 // the clock goes by it
			h.stored["metadata"].(map[string]any)["creationTimestamp"] = h.inputs(nil).Now.Add(-time.Hour).Format(time.RFC3339)
			h.webhooks = besides(h.world)["a replica with the other flags"]
			before := h.managed()
			require.Nil(t, h.write(h.firstPass("x", record.CauseConfigChange, tc.age, h.object().Generation()+tc.generation)))
			assert.Equal(t, tc.kept, h.managed()[Hash] == "x")
			assert.Equal(t, !tc.kept, h.managed().same(before, Hash, LastReload))
		})
	}
}
