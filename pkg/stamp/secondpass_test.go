package stamp

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// firstPass returns a write that bears a hash, as our own first pass leaves it, with an explanation of some age for some generation.
func (w *world) firstPass(hash, cause string, age time.Duration, generation int64) func(raw map[string]any) {
	last := record.LastReload{Time: w.inputs(nil).Now.Add(-age), Hash: hash, Cause: cause, Generation: generation}
	return func(raw map[string]any) {
		w.setManaged(raw, Hash, hash)
		w.setManaged(raw, LastReload, last.String())
	}
}

// The explanation that a second call finds is kept only if it is of the write that is being judged.
func TestSecondPassKeepsTheExplanationOfThisWriteOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age        time.Duration
		generation int64
		// created is how long ago the workload was created.
		created time.Duration
		kept    bool
	}{
		"of this write":                       {created: time.Hour, kept: true},
		"by a clock that is behind":           {created: time.Hour, age: 45 * time.Second, kept: true},
		"by a clock that is ahead":            {created: time.Hour, age: -45 * time.Second, kept: true},
		"of an earlier generation":            {created: time.Hour, generation: -1},
		"of an earlier generation, and old":   {created: time.Hour, age: 45 * time.Second, generation: -1},
		"from before the workload's creation": {created: 40 * time.Second, age: 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.rv += 3600 // the clock goes by it
			w.set(cm("a"), "B")
			w.stored["metadata"].(map[string]any)["creationTimestamp"] = w.inputs(nil).Now.Add(-c.created).Format(time.RFC3339)
			write := w.firstPass(w.hash(), "mine", c.age, w.object().Generation()+c.generation)
			require.Nil(t, w.write(func(raw map[string]any) { write(raw); setImage("image:2")(raw) }))
			assert.Equal(t, RuleSecondPass, w.result.Rule)
			assert.Equal(t, w.hash(), w.managed()[Hash])
			last, _ := lastOf(w) // none is none of this write
			assert.Equal(t, c.kept, last.Cause == "mine", "the cause is %q", last.Cause)
		})
	}
}

// Two replicas with different clocks judge the two passes of a release with a change.
func TestSecondPassByAReplicaWithAnotherClock(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{45, 3600, -45, -3600} {
		t.Run(strconv.Itoa(seconds)+" seconds", func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.rv += 7200 // the clock goes by it
			w.set(cm("a"), "B")
			first := w.inputs(nil).Now
			w.other = func(raw map[string]any) {
				w.rv += seconds
				annotate(raw, "other", "1")
			}
			require.Nil(t, w.write(setImage("image:2")))
			assert.Equal(t, RuleSecondPass, w.result.Rule)
			last, err := lastOf(w)
			require.NoError(t, err)
			assert.Equal(t, record.CauseRelease, last.Cause)
			assert.Equal(t, []record.Change{{Ref: "configmap/a", Type: record.Modified}}, last.Changes)
			assert.Equal(t, first, last.Time)
			assert.Equal(t, w.hash(), w.managed()[Hash])
		})
	}
}

// The clock of the replica is behind that of the API server, which has created the workload a moment ago: each reload has a time of its
// own that is not before the creation, and the second pass recognizes the explanation of the first one.
func TestClockBehindTheCreationOfTheWorkload(t *testing.T) {
	t.Parallel()
	w := started(t)
	created := w.inputs(nil).Now.Add(10 * time.Minute)
	w.stored["metadata"].(map[string]any)["creationTimestamp"] = created.Format(time.RFC3339)
	w.other = setImage("other:1")
	for n, content := range []string{"B", "A", "B"} {
		w.set(cm("a"), content)
		w.poke()
		assert.Equal(t, RuleSecondPass, w.result.Rule)
		last, err := lastOf(w)
		require.NoError(t, err)
		assert.Equal(t, created.Add(time.Duration(n)*time.Millisecond), last.Time)
		assert.Len(t, last.Before, n, "no reload is lost")
		w.other = setImage("other:" + content)
	}
}

// A client of SAP's protocol waits for pods with the digest that it has asked with: so much the second call must know of the first.
func TestSecondPassRepeatsWhatAClientAwaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content bool // the mode is --hash=content
		hash    func(published string) string
		cause   string
		stamped bool
	}{
		"a verified reload":           {cause: record.CauseVerifiedReload, stamped: true},
		"another cause":               {cause: record.CauseConfigChange},
		"another digest":              {cause: record.CauseVerifiedReload, hash: func(string) string { return strings.Repeat("1", 64) }},
		"neither":                     {cause: record.CauseConfigChange, hash: func(string) string { return strings.Repeat("1", 64) }},
		"no digest of SAP's is asked": {cause: record.CauseVerifiedReload, content: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.revision = !c.content
			w.set(cm("a"), "A") // its version moves
			hash := digest.Revision("test", []string{"a"}, []string{"a"}, w.states([]reference.Ref{cm("a"), secret("a")}))
			if c.hash != nil {
				hash = c.hash(hash)
			}
			before := w.managed()[Hash]
			require.Nil(t, w.write(w.firstPass(hash, c.cause, 0, w.object().Generation())))
			assert.Equal(t, RuleSecondPass, w.result.Rule)
			want := before
			if c.stamped {
				want = hash
			}
			assert.Equal(t, want, w.managed()[Hash])
		})
	}
}

// Where the state cannot be read, a second call has nothing to stamp with.
func TestSecondPassWithoutTheStateKeepsTheHash(t *testing.T) {
	t.Parallel()
	w := started(t)
	before := w.managed()[Hash]
	w.unreadable = true
	write := w.firstPass(before, record.CauseRelease, 0, w.object().Generation())
	require.Nil(t, w.write(func(raw map[string]any) {
		write(raw)
		annotate(raw, w.keys.ConfigMaps, "a,b")
		setImage("image:2")(raw)
	}))
	assert.Equal(t, RuleSecondPass, w.result.Rule)
	assert.Equal(t, before, w.managed()[Hash])
}

// The first pass has read the state, stamped it and explained that. Where the second one cannot read it, it keeps all of that: the pods
// restart with what the first one has read.
func TestSecondPassWithoutTheStateKeepsTheReloadOfTheFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(w *world)
		other func(raw map[string]any)
		cause string
	}{
		"of a release":                       {write: func(w *world) { require.Nil(t, w.write(setImage("image:2"))) }, cause: record.CauseRelease},
		"of a request":                       {write: (*world).poke, cause: record.CauseConfigChange},
		"of a request, and another template": {write: (*world).poke, other: setImage("other:1"), cause: record.CauseConfigChange},
		"of a list edit": {
			write: func(w *world) {
				require.Nil(t, w.write(func(raw map[string]any) { annotate(raw, w.keys.Secrets, "") }))
			},
			cause: record.CauseListEdit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			before := w.managed()[Hash]
			w.set(cm("a"), "B")
			w.other = func(raw map[string]any) {
				w.unreadable = true
				raw["metadata"].(map[string]any)["labels"] = map[string]any{"injected": "true"}
				if c.other != nil {
					c.other(raw)
				}
			}
			c.write(w)
			require.Error(t, w.result.ReadError)
			w.unreadable, w.other = false, nil
			assert.NotEqual(t, before, w.managed()[Hash])
			assert.Equal(t, w.hash(), w.managed()[Hash])
			last, reported := w.managed().LastReload(w.inputs(nil).Now)
			require.True(t, reported, "without last-reload there is no Event")
			assert.Equal(t, c.cause, last.Cause)
			assert.Contains(t, last.Changes, record.Change{Ref: "configmap/a", Type: record.Modified})
			assert.Empty(t, w.result.Warnings, "the hash is the updated one")
			w.at(t, 1, "nothing is left to do")
		})
	}
}

// A release that adds a reference needs another hash, and no explanation, since nothing has changed.
func TestSecondPassWithoutTheStateDoesNotWarnOfAStampWithoutAReload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		other  func(raw map[string]any)
		warned bool
	}{
		"a label": {other: func(raw map[string]any) {
			raw["metadata"].(map[string]any)["labels"] = map[string]any{"injected": "true"}
		}},
		"an object": {other: addVolume, warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set(cm("b"), "A")
			w.set(secret("x"), "A")
			require.Nil(t, w.create(w.manifest(map[string]string{autoKey: "true"})))
			w.quiesce()
			before := w.managed()[Hash]
			w.other = func(raw map[string]any) {
				w.unreadable = true
				c.other(raw)
			}
			require.Nil(t, w.write(addEnvFrom))
			require.Error(t, w.result.ReadError)
			assert.NotEqual(t, before, w.managed()[Hash])
			assert.Equal(t, c.warned, len(w.result.Warnings) > 0, "%v", w.result.Warnings)
			w.unreadable, w.other = false, nil
			w.at(t, 1, "nothing is left to do")
		})
	}
}

// A client of SAP's protocol asks for a reload that no Change makes due: no loop would repeat it.
func TestSecondPassWithoutTheStateKeepsWhatAClientAwaits(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.revision = true
	w.set(cm("a"), "A") // its version moves
	published := digest.Revision("test", []string{"a"}, []string{"a"}, w.states([]reference.Ref{cm("a"), secret("a")}))
	w.other = func(raw map[string]any) {
		w.unreadable = true
		annotate(raw, "other", "1")
	}
	require.Nil(t, w.write(func(raw map[string]any) { w.setManaged(raw, Dummy, published) }))
	assert.Equal(t, published, w.managed()[Hash])
	w.unreadable = false
	w.at(t, 1, "nothing is left to do")
}

// What is written by hand while nothing can be read is kept only if it explains a stamp of this version of the workload.
func TestStampWithoutTheStateIsKeptOnlyWithItsExplanation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hash       string
		generation int64
		kept       bool
	}{
		"the stamp of a first pass":           {hash: "first", kept: true},
		"that of an earlier version":          {hash: "first", generation: -1},
		"an explanation of the present stamp": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			before := w.managed()
			w.unreadable = true
			hash := cmp.Or(c.hash, before[Hash])
			write := w.firstPass(hash, "mine", 0, w.object().Generation()+c.generation)
			require.Nil(t, w.write(write))
			want := before
			if c.kept {
				last := w.managed()[LastReload]
				want = Managed{Hash: hash, LastReload: last}
				assert.Contains(t, last, "mine")
			}
			assert.Equal(t, want, w.managed())
		})
	}
}

// The loop acts on what has changed, once it can be read. That the lists were edited is recorded nowhere.
func TestWarningAboutAWriteThatCannotBeReadSaysWhatFollows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(w *world) func(raw map[string]any)
		want string
	}{
		"a release": {func(*world) func(map[string]any) { return setImage("image:2") }, "it retries by itself"},
		"a list edit": {func(w *world) func(map[string]any) {
			return func(raw map[string]any) { annotate(raw, w.keys.Secrets, "") }
		}, "edit them again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := started(t)
			w.unreadable = true
			require.Nil(t, w.write(c.edit(w)))
			require.Len(t, w.result.Warnings, 1)
			assert.Contains(t, w.result.Warnings[0], c.want)
		})
	}
}

// Another webhook edits the template after us. A manifest without its edit and without managed annotations lists an adopted object no more:
// to the first pass the template has changed, and it takes the object out of the Record. To the second pass the template is as before. The
// user has written no managed annotation, and is not warned.
func TestSecondPassDoesNotWarnOfARecordWithFewerObjects(t *testing.T) {
	t.Parallel()
	w := started(t)
	w.other = setImage("edited:1")
	edge := reference.Ref{Kind: "proxies.example.org", Name: "edge"}
	w.set(edge, "A")
	require.Nil(t, w.write(func(raw map[string]any) { annotate(raw, w.keys.Referents, edge.String()) }))
	require.Contains(t, w.managed()[Record], edge.String(), "it is adopted")
	before := w.managed()
	w.set(secret("a"), "A") // a new version of it, which the first pass records
	require.Nil(t, w.write(func(raw map[string]any) {
		w.forget(raw)
		annotate(raw, w.keys.Referents, "")
		setImage("image:1")(raw)
	}))
	require.Equal(t, RuleAnnotationsEdited, w.result.Rule, "the second pass")
	assert.Empty(t, w.result.Warnings)
	assert.Equal(t, before[Hash], w.managed()[Hash])
}
