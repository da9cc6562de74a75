package stamp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// request returns the request that a change of the stored workload makes.
func (w *world) request(change func(map[string]any)) Write {
	raw := clone(w.t, w.stored)
	if change != nil {
		change(raw)
	}
	old := w.object()
	req, _ := w.reader.NewWrite(&old, workload.Object{Kind: w.kind, Raw: raw})
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
			func(_ *world, raw map[string]any) { raw["spec"].(map[string]any)["template"] = "x" }, RuleExcluded, all,
		},
		"rule 4, a dummy": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Dummy, "x") }, RuleVerifiedReload, all,
		},
		"rule 4, a dummy for this generation": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Dummy, "x@1") }, RuleVerifiedReload, all,
		},
		"rule 3, a dummy for another generation": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Dummy, "x@2") }, RuleNothing, nil,
		},
		"rule 4 before rule 5": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Dummy, "x"); setImage("image:2")(raw) }, RuleVerifiedReload, all,
		},
		"rule 5, the template": {
			func(_ *world, raw map[string]any) { setImage("image:2")(raw) }, RuleTemplateChanged, all,
		},
		"rule 5 before rule 6": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Hash, ""); setImage("image:2")(raw) }, RuleTemplateChanged, all,
		},
		"rule 5, the lists": {
			func(w *world, raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "a,b") },
			RuleListsEdited,
			[]reference.Ref{cm("a"), cm("b"), secret("a")},
		},
		"not rule 5, the lists in another form": {
			func(w *world, raw map[string]any) { annotate(raw, w.keys.ConfigMaps, " a ,, a") }, RuleNothing, nil,
		},
		"rule 6, annotations are missing: no read": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Hash, ""); w.setManaged(raw, Record, "") }, RuleAnnotationsMissing, nil,
		},
		"rule 6, an annotation has another value": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Hash, "x") }, RuleAnnotationsEdited, all,
		},
		"rule 6, one is missing and one is another": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Hash, ""); w.setManaged(raw, Record, "x") }, RuleAnnotationsEdited, all,
		},
		"rule 6, an annotation that was not there": {
			func(w *world, raw map[string]any) { w.setManaged(raw, Restart, "x") }, RuleAnnotationsEdited, all,
		},
		"rule 4a, a stamp with its explanation": {
			func(w *world, raw map[string]any) {
				w.setManaged(raw, Hash, "x")
				w.setManaged(raw, LastReload, record.LastReload{Hash: "x", Cause: "x"}.String())
			}, RuleSecondPass, all,
		},
		"not rule 4a, the explanation of another stamp": {
			func(w *world, raw map[string]any) {
				w.setManaged(raw, Hash, "x")
				w.setManaged(raw, LastReload, record.LastReload{Hash: "y", Cause: "x"}.String())
			}, RuleAnnotationsEdited, all,
		},
		"rule 1, ignored, with a new template": {
			func(w *world, raw map[string]any) { w.ignore(raw); setImage("image:2")(raw) }, RuleExcluded, all,
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
		req, _ := w.reader.NewWrite(nil, workload.Object{Kind: kind, Raw: raw})
		return Choose(req)
	}
	nothing := func(map[string]any) {}
	assert.Equal(t, RuleCreate, choose(w.kind, nothing).Rule)
	assert.Equal(t, RuleCreate, choose(w.kind, func(raw map[string]any) { w.setManaged(raw, Dummy, "x") }).Rule, "a dummy came along from elsewhere")
	assert.Equal(t, RuleExcluded, choose(w.kind, func(raw map[string]any) { annotate(raw, w.keys.ConfigMaps, "") }).Rule)
	job := workload.Job()
	assert.Equal(t, RuleCreate, choose(job, nothing).Rule, "a Job is stamped when it is created")
	old := workload.Object{Kind: job, Raw: w.manifest(w.lists("a", ""))}
	req, _ := w.reader.NewWrite(&old, old)
	assert.Equal(t, RuleExcluded, Choose(req).Rule, "and never again: its template is immutable")
}

// SAP's digest of a missing object differs from that of the object: a client that asks with it must not start pods that cannot.
func TestRevisionModeHoldsWhereARequiredObjectIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.revision = true
	w.set(cm("b"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("b", ""))))
	w.remove(cm("b"))
	w.at(t, 0, "held")
	missing := digest.Revision("test", []string{"b"}, nil, w.states([]reference.Ref{cm("b")}))
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, missing) }))
	assert.NotContains(t, w.managed(), Dummy)
	w.at(t, 0, "the request is purged")
}

func TestRevisionMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.revision = true
	w.set(cm("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("a,a, Wrong", ""))))
	revision := func() string {
		return digest.Revision("test", []string{"a", "a", "Wrong"}, nil, w.states([]reference.Ref{cm("a")}))
	}
	assert.Equal(t, revision(), w.managed()[Hash], "the value is SAP's")
	w.set(cm("a"), "A")
	w.at(t, 0, "whether something changed is decided by content")
	require.Nil(t, w.write(func(raw map[string]any) {
		w.setManaged(raw, Dummy, revision())
	}), "the revision digest is accepted")
	assert.Equal(t, revision(), w.managed()[Hash], "a client of SAP's protocol waits for pods that have it")
	w.at(t, 1, "the one that was asked for")
	w.set(cm("a"), "B")
	w.at(t, 2, "a change")
	w.set(cm("a"), "B")
	w.other = func(raw map[string]any) { annotate(raw, "other", "1") }
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, revision()) }))
	w.other = nil
	w.at(t, 3, "also where another webhook comes in between")
	w.set(cm("a"), "B")
	require.Nil(t, w.write(setImage("image:2")))
	assert.Equal(t, revision(), w.managed()[Hash], "a template that changes anyway takes the digest of now")
	w.away = true
	w.write(func(raw map[string]any) { w.setManaged(raw, Record, "") })
	w.away = false
	w.at(t, 4, "an equal digest rebuilds the Record")
	assert.Contains(t, w.managed()[Record], "=")
	rejection := w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, "x") })
	require.NotNil(t, rejection)
	assert.Contains(t, rejection.Message, revision(), "the client gets the digest of the mode")

	auto := newWorld(t)
	auto.revision = true
	auto.set(cm("b"), "A")
	require.Nil(t, auto.create(auto.manifest(map[string]string{autoKey: "true"})))
	assert.Equal(t, auto.hash(), auto.managed()[Hash], "there are no lists over which SAP's digest could be made")
	empty := digest.Revision("test", nil, nil, nil)
	assert.NotNil(t, auto.write(func(raw map[string]any) { auto.setManaged(raw, Dummy, empty) }), "the digest of no lists proves nothing")
	before := auto.managed()
	require.Nil(t, auto.write(setImage("image:2")))
	assert.Equal(t, before, auto.managed(), "without lists, nothing has moved")
}

// Its pods have no digest that a client waits for, and a rollback of the release finds them.
func TestReleaseInRevisionModeLeavesATemplateThatWasNeverStamped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.revision, w.away = true, true
	w.set(cm("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
	w.away = false
	w.at(t, 0, "what is found is adopted")
	require.Nil(t, w.write(setImage("image:2")))
	assert.NotContains(t, w.managed(), Hash)
	require.Nil(t, w.write(setImage("image:1")))
	assert.NotContains(t, w.managed(), Hash)
	w.set(cm("a"), "B")
	w.at(t, 3, "two releases, and a change that stamps it")
	assert.Equal(t, digest.Revision("test", []string{"a"}, nil, w.states([]reference.Ref{cm("a")})), w.managed()[Hash])
}

// No client has asked for its digest, and the pods of a rollback have it.
func TestReleaseInRevisionModeLeavesATemplateThatWasStampedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(cm("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
	before := w.managed()[Hash]
	w.revision = true
	require.Nil(t, w.write(setImage("image:2")))
	assert.Equal(t, before, w.managed()[Hash])
	require.Nil(t, w.write(setImage("image:1")))
	assert.Equal(t, before, w.managed()[Hash])
	w.set(cm("a"), "B")
	w.at(t, 3, "two releases, and a change that stamps it")
	assert.Equal(t, digest.Revision("test", []string{"a"}, nil, w.states([]reference.Ref{cm("a")})), w.managed()[Hash])
}

// It waits for pods that have the digest.
func TestReleaseThatAsksForARevisionDigestGetsIt(t *testing.T) {
	t.Parallel()
	for name, stamped := range map[string]bool{"a template that was never stamped": false, "one that was stamped before the mode was set": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(cm("a"), "A")
			if stamped {
				require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
			} else {
				w.away = true
				w.create(w.manifest(w.lists("a", "")))
				w.away = false
				w.quiesce()
			}
			w.revision = true
			published := digest.Revision("test", []string{"a"}, nil, w.states([]reference.Ref{cm("a")}))
			require.Nil(t, w.write(func(raw map[string]any) {
				setImage("image:2")(raw)
				w.setManaged(raw, Dummy, published)
			}))
			assert.Equal(t, published, w.managed()[Hash])
		})
	}
}

// The other way round it keeps its value: no client waits for pods with a content digest.
func TestReleaseThatAsksForAContentDigestKeepsTheRevisionDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.revision = true
	w.set(cm("a"), "A")
	require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
	before := w.managed()[Hash]
	w.revision = false
	require.NotEqual(t, before, w.hash())
	require.Nil(t, w.write(func(raw map[string]any) {
		setImage("image:2")(raw)
		w.setManaged(raw, Dummy, w.hash())
	}))
	assert.Equal(t, before, w.managed()[Hash])
	w.set(cm("a"), "B")
	w.at(t, 2, "the release, and a change")
	assert.Equal(t, w.hash(), w.managed()[Hash])
}

// The loop compares the digest with the content that it has run a CronJob with: SAP's digest in its place would make one Job more.
func TestReloadOfTheLiveStateNamesTheDigestOfItsContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason   string
		revision bool
		want     func(w *world) string
	}{
		"content":  {reason: "It is the hash.", want: func(*world) string { return "" }},
		"revision": {reason: "The hash is another one.", revision: true, want: (*world).hash},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.revision = c.revision
			w.set(cm("a"), "A")
			require.Nil(t, w.create(w.manifest(w.lists("a", ""))))
			w.set(cm("a"), "B")
			live := w.bound(digest.AnyCurrent)
			require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, live) }))
			last, err := lastOf(w)
			require.NoError(t, err)
			assert.Equal(t, w.managed()[Hash], last.Hash)
			assert.Equal(t, c.want(w), last.Digest, c.reason)
		})
	}
}

// A state that could not be read live may be older than the request. It stamps what a user writes, but verifies nothing.
func TestUnverifiedStateProvesNothing(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]func(w *world) string{
		"a digest":                       func(w *world) string { return w.hash() },
		"the live state at a generation": func(w *world) string { return w.bound(digest.AnyCurrent) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			req := w.request(func(raw map[string]any) { w.setManaged(raw, Dummy, given(w)) })
			plan := Choose(req)
			inputs := w.inputs(plan.Reads)
			for ref, state := range inputs.States {
				state.Unverified = "read secret/tls: no answer"
				inputs.States[ref] = state
			}
			result := plan.Apply(req, inputs)
			require.NotNil(t, result.Reject)
			assert.False(t, result.Reject.Conflict, "reading the workload again would not help")
			assert.Contains(t, result.Reject.Message, "may be older than this request: read secret/tls: no answer")

			req = w.request(setImage("image:2"))
			assert.Nil(t, Choose(req).Apply(req, inputs).Reject, "the write of a user passes")
		})
	}
}

func TestNoKeyNoProof(t *testing.T) {
	t.Parallel()
	w := started(t)
	req := w.request(func(raw map[string]any) { w.setManaged(raw, Dummy, w.hash()) })
	plan := Choose(req)
	inputs := w.inputs(plan.Reads)
	inputs.Ring = digest.Ring{}
	result := plan.Apply(req, inputs)
	require.NotNil(t, result.Reject)
	assert.False(t, result.Reject.Conflict, "what cannot be verified must not pass as if it were")
}
