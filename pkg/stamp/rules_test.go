package stamp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// request returns the request that a change of the stored workload makes.
func (w *world) request(change func(map[string]any)) Request {
	raw := clone(w.t, w.stored)
	if change != nil {
		change(raw)
	}
	old := w.object()
	req, _ := w.reader.NewRequest(&old, workload.Object{Kind: w.kind, Raw: raw})
	return req
}

func TestChoose(t *testing.T) {
	t.Parallel()
	all := []reference.Ref{cm("a"), secret("a")}
	for name, c := range map[string]struct {
		change func(*world, map[string]any)
		want   Rule
		reads  []reference.Ref
	}{
		"rule 1, the lists are gone": {
			func(w *world, raw map[string]any) {
				annotate(raw, w.keys.ConfigMaps, "")
				annotate(raw, w.keys.Secrets, "")
			}, RuleExcluded, nil,
		},
		"rule 1, only impossible names": {
			func(w *world, raw map[string]any) {
				annotate(raw, w.keys.ConfigMaps, "Not A Name")
				annotate(raw, w.keys.Secrets, "")
			}, RuleExcluded, nil,
		},
		"rule 1, ignored": {
			func(w *world, raw map[string]any) {
				raw["metadata"].(map[string]any)["labels"] = map[string]any{w.keys.IgnoredLabel: "true"}
			}, RuleExcluded, nil,
		},
		"not rule 1, a label that is not true": {
			func(w *world, raw map[string]any) {
				raw["metadata"].(map[string]any)["labels"] = map[string]any{w.keys.IgnoredLabel: "false"}
			}, RuleNothing, nil,
		},
		"rule 1, the template is no template": {
			func(_ *world, raw map[string]any) { raw["spec"].(map[string]any)["template"] = "x" }, RuleExcluded, nil,
		},
		"rule 4, a dummy": {
			func(w *world, raw map[string]any) { w.mark(raw, Dummy, "x") }, RuleVerifiedReload, all,
		},
		"rule 4, a dummy for this generation": {
			func(w *world, raw map[string]any) { w.mark(raw, Dummy, "x@1") }, RuleVerifiedReload, all,
		},
		"rule 3, a dummy for another generation": {
			func(w *world, raw map[string]any) { w.mark(raw, Dummy, "x@2") }, RuleNothing, nil,
		},
		"rule 4 before rule 5": {
			func(w *world, raw map[string]any) { w.mark(raw, Dummy, "x"); setImage("image:2")(raw) }, RuleVerifiedReload, all,
		},
		"rule 5, the template": {
			func(_ *world, raw map[string]any) { setImage("image:2")(raw) }, RuleTemplateChanged, all,
		},
		"rule 5 before rule 6": {
			func(w *world, raw map[string]any) { w.mark(raw, Hash, ""); setImage("image:2")(raw) }, RuleTemplateChanged, all,
		},
		"rule 5, the lists": {
			func(w *world, raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,b") },
			RuleListsEdited,
			[]reference.Ref{cm("a"), cm("b"), secret("a")},
		},
		"not rule 5, the lists in another form": {
			func(w *world, raw map[string]any) { annotate(raw, w.keys.ConfigMaps, " a ,, a") }, RuleNothing, nil,
		},
		"rule 6, marks are missing: no read": {
			func(w *world, raw map[string]any) { w.mark(raw, Hash, ""); w.mark(raw, Record, "") }, RuleMarksForgotten, nil,
		},
		"rule 6, a mark is another one": {
			func(w *world, raw map[string]any) { w.mark(raw, Hash, "x") }, RuleMarksEdited, all,
		},
		"rule 6, one is missing and one is another": {
			func(w *world, raw map[string]any) { w.mark(raw, Hash, ""); w.mark(raw, Record, "x") }, RuleMarksEdited, all,
		},
		"rule 6, a mark that was not there": {
			func(w *world, raw map[string]any) { w.mark(raw, Baseline, "x") }, RuleMarksEdited, all,
		},
		"rule 7, the other dialect adds an object": {
			func(_ *world, raw map[string]any) { annotate(raw, autoKey, "true") },
			RuleAdopt,
			[]reference.Ref{cm("a"), cm("b"), secret("a")},
		},
		"rule 8, a scale": {
			func(_ *world, raw map[string]any) { raw["spec"].(map[string]any)["replicas"] = 9.0 }, RuleNothing, nil,
		},
		"rule 8, a label": {
			func(_ *world, raw map[string]any) {
				raw["metadata"].(map[string]any)["labels"] = map[string]any{"x": "y"}
			},
			RuleNothing, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			plan := Choose(w.request(func(raw map[string]any) { c.change(w, raw) }))
			assert.Equal(t, c.want, plan.Rule)
			assert.Equal(t, c.reads, plan.Reads)
		})
	}
}

func TestChooseCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	choose := func(kind workload.Kind, change func(map[string]any)) Plan {
		raw := w.manifest(w.lists("a", ""))
		change(raw)
		req, _ := w.reader.NewRequest(nil, workload.Object{Kind: kind, Raw: raw})
		return Choose(req)
	}
	nothing := func(map[string]any) {}
	assert.Equal(t, RuleCreate, choose(w.kind, nothing).Rule)
	assert.Equal(t, RuleCreate, choose(w.kind, func(raw map[string]any) { w.mark(raw, Dummy, "x") }).Rule, "a dummy came along from elsewhere")
	assert.Equal(t, RuleExcluded, choose(w.kind, func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "") }).Rule)
	job, _ := workload.NewKinds(workload.Builtin()...).Get(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
	assert.Equal(t, RuleCreate, choose(job, nothing).Rule, "a Job is stamped when it is created")
	old := workload.Object{Kind: job, Raw: w.manifest(w.lists("a", ""))}
	req, _ := w.reader.NewRequest(&old, old)
	assert.Equal(t, RuleExcluded, Choose(req).Rule, "and never again: its template is immutable")
}

// Rule 6 judges what somebody wrote by what was known and what is there.
func TestStandOrRestore(t *testing.T) {
	t.Parallel()
	fresh := func(w *world, raw map[string]any) {
		req := w.request(nil)
		marks, err := req.freshMarks(w.live(req.New.Intent.Refs()))
		require.NoError(w.t, err)
		w.mark(raw, Hash, marks[Hash])
		w.mark(raw, Record, marks[Record])
	}
	for name, c := range map[string]struct {
		prepare func(*world)
		change  func(*world, map[string]any)
		stands  bool
	}{
		"a stamp that is due stands": {
			func(w *world) { w.set(cm("a"), "B") }, fresh, true,
		},
		"a true stamp that nothing calls for would restart for nothing": {
			func(w *world) { w.set(cm("a"), "A") }, fresh, false,
		},
		"under another key, neither": {
			func(w *world) { w.rotate("2") }, fresh, false,
		},
		"a stamp of a state that is over": {
			func(w *world) { w.set(cm("a"), "B") },
			func(w *world, raw map[string]any) {
				fresh(w, raw)
				w.set(cm("a"), "C")
			}, false,
		},
		"a due hash without its record": {
			func(w *world) { w.set(cm("a"), "B") },
			func(w *world, raw map[string]any) { fresh(w, raw); w.mark(raw, Record, "") }, false,
		},
		"a due stamp with a hint of a revision to come": {
			func(w *world) { w.set(cm("a"), "B") },
			func(w *world, raw map[string]any) {
				fresh(w, raw)
				record := marksOf(workload.Object{Kind: w.kind, Raw: raw}, w.keys)[Record]
				w.mark(raw, Record, strings.ReplaceAll(record, "@", "@9"))
			}, false,
		},
		"a due stamp with an explanation of another one": {
			func(w *world) { w.set(cm("a"), "B") },
			func(w *world, raw map[string]any) {
				fresh(w, raw)
				w.mark(raw, LastReload, record.LastReload{Hash: "x", Cause: "x"}.String())
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			before := w.marks()
			c.prepare(w)
			require.Nil(t, w.write(func(raw map[string]any) { c.change(w, raw) }))
			assert.Equal(t, RuleMarksEdited, w.result.Rule)
			assert.Equal(t, c.stands, w.result.Stamped)
			if !c.stands {
				assert.Equal(t, before, w.marks())
			}
		})
	}
}

// A stamp voids the Baseline, also where the hash stays the same and would let it count again.
func TestStampDropsBaseline(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.set(cm("a"), "B")
	req := w.request(func(raw map[string]any) {
		w.mark(raw, Hash, "x")
		w.mark(raw, Baseline, "v1::-:")
	})
	fresh, err := req.freshMarks(w.live(req.New.Intent.Refs()))
	require.NoError(t, err)
	req.New.Marks[Hash], req.New.Marks[Record] = fresh[Hash], fresh[Record]
	plan := Choose(req)
	result := plan.Apply(req, w.live(plan.Reads))
	assert.True(t, result.Stamped)
	assert.NotContains(t, result.Marks, Baseline)
}

func TestHonestHint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hint, live string
		want       bool
	}{
		"none":                          {"", "10", true},
		"the live revision":             {"10", "10", true},
		"an earlier one":                {"9", "10", true},
		"an earlier one of same length": {"10", "11", true},
		"one to come":                   {"11", "10", false},
		"one far to come":               {"100", "99", false},
		"a touched record":              {"g5", "10", true},
		"with a leading zero":           {"010", "11", true},
		"revisions that are no numbers": {"10", "abc", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, honestHint(c.hint, c.live))
		})
	}
}

func TestRevisionMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.revision = true
	w.set(cm("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("a,a, Wrong", ""))))
	req := w.request(nil)
	assert.Equal(t, req.revision(w.live(req.New.Intent.Refs())), w.marks()[Hash], "the value is SAP's")
	w.set(cm("a"), "A")
	w.at(t, 0, "whether something changed is decided by content")
	require.Nil(t, w.write(func(raw map[string]any) {
		w.mark(raw, Dummy, req.revision(w.live(req.New.Intent.Refs())))
	}), "the revision digest is accepted")
	w.at(t, 0, "the content is the recorded one")
	w.set(cm("a"), "B")
	w.at(t, 1, "a change")
	rejection := w.write(func(raw map[string]any) { w.mark(raw, Dummy, "x") })
	require.NotNil(t, rejection)
	assert.Contains(t, rejection.Message, req.revision(w.live(req.New.Intent.Refs())), "a client is told the digest of the mode")

	auto := newWorld(t)
	auto.revision = true
	auto.set(cm("b"), "A")
	require.Nil(t, auto.create(auto.manifest(map[string]string{autoKey: "true"})))
	assert.Equal(t, auto.hash(), auto.marks()[Hash], "there are no lists over which SAP's digest could be made")
	empty := Request{}.revision(Live{Namespace: "test"})
	assert.NotNil(t, auto.write(func(raw map[string]any) { auto.mark(raw, Dummy, empty) }), "the digest of no lists proves nothing")
}

func TestMissingObjectsAreTold(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world) *Rejection{
		"created": func(w *world) *Rejection { return w.create(w.manifest(w.lists("typo", ""))) },
		"lists edited": func(w *world) *Rejection {
			return w.write(func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,typo") })
		},
		"with a new template": func(w *world) *Rejection {
			return w.write(func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,typo"); setImage("image:2")(raw) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			require.Nil(t, change(w))
			assert.Contains(t, strings.Join(w.result.Warnings, " "), "configmap/typo")
			require.Nil(t, w.write(setImage("image:9")))
			assert.Empty(t, w.result.Warnings, "only to who brings it")
		})
	}
}

func TestNoKeyNoProof(t *testing.T) {
	t.Parallel()
	w := started(t)
	req := w.request(func(raw map[string]any) { w.mark(raw, Dummy, w.hash()) })
	plan := Choose(req)
	live := w.live(plan.Reads)
	live.Ring = digest.Ring{}
	result := plan.Apply(req, live)
	require.NotNil(t, result.Reject)
	assert.EqualValues(t, 503, result.Reject.Code, "what cannot be verified must not pass as if it were")
}
