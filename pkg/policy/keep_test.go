package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

var proxy = reference.Ref{Kind: "kafkaproxies.kroxylicious.io", Name: "p"}

func heldState() digest.State {
	return digest.State{Hold: &digest.Hold{Reason: "secret/tls is missing", Since: time.Unix(1, 0)}}
}

// custom is a custom resource that is not held.
func custom(t *testing.T, content string) digest.State {
	t.Helper()
	s := state(t, proxy, content, "")
	return digest.State{Entries: s.Entries}
}

func TestHeldCustomResource(t *testing.T) {
	t.Parallel()
	hash, err := digest.Hash(newest(t), map[reference.Ref]digest.State{a: state(t, a, "A", "2"), proxy: custom(t, "P")})
	require.NoError(t, err)
	alone, err := digest.Hash(newest(t), map[reference.Ref]digest.State{a: state(t, a, "A", "2")})
	require.NoError(t, err)
	// undone is what is known of a template that was brought back without its Record, beside the one of the template before.
	undone := func(key digest.KeyID) Known {
		return Known{Hash: hash, Last: record.New("of another template", key, items{
			a: itemUnder(t, key, a, "before", ""), proxy: itemUnder(t, key, proxy, "P", ""),
		})}
	}
	for name, c := range map[string]struct {
		reason string
		known  Known
		held   bool
		now    string // of the ConfigMap a
		action Action
		says   string
		adopt  []reference.Ref
	}{
		"recorded": {
			reason: "What the pods have counts as the current state.",
			known:  known(newest(t), items{a: item(t, a, "A", ""), proxy: item(t, proxy, "P", "")}), held: true, now: "A",
			action: Nothing, says: "the pods have the current configuration",
		},
		"recorded, another object changes": {
			reason: "It holds nothing but itself.",
			known:  known(newest(t), items{a: item(t, a, "A", ""), proxy: item(t, proxy, "P", "")}), held: true, now: "B",
			action: Reload, says: "configmap/a modified",
		},
		"changed, not held": {
			reason: "It is a Change as any other.",
			known:  known(newest(t), items{a: item(t, a, "A", ""), proxy: item(t, proxy, "before", "")}), now: "A",
			action: Reload, says: "kafkaproxies.kroxylicious.io/p modified",
		},
		"not recorded": {
			reason: "A state that cannot be trusted is not adopted.",
			known:  known(newest(t), items{a: item(t, a, "A", "")}), held: true, now: "A",
			action: Nothing, says: "waiting for kafkaproxies.kroxylicious.io/p: secret/tls is missing",
		},
		"not recorded, another object is new": {
			reason: "The others are adopted without it.",
			held:   true, now: "A", action: Nothing, says: "first seen: the current configuration is adopted as the running one", adopt: []reference.Ref{a},
		},
		"not recorded, not held": {
			reason: "It is adopted: the pods are taken to run with it.",
			known:  known(newest(t), items{a: item(t, a, "A", "")}), now: "A",
			action: Nothing, says: "first seen: the current configuration is adopted as the running one", adopt: []reference.Ref{proxy},
		},
		"only the hash is known": {
			reason: "The hash covers it, so that nothing can be compared.",
			known:  Known{Hash: string(newest(t)) + "00000000000000000000000000000000000000000000000000000000"}, held: true, now: "A",
			action: Nothing, says: "waiting for kafkaproxies.kroxylicious.io/p: secret/tls is missing",
		},
		"only the hash is known, which is that of what it was last": {
			reason: "It is as if it were not held: the Record is rebuilt.",
			known:  undone(newest(t)), held: true, now: "A",
			action: Nothing, says: "first seen: the current configuration is adopted as the running one", adopt: []reference.Ref{a, proxy},
		},
		"only the hash is known, another object changes": {
			reason: "It holds nothing but itself.",
			known:  undone(newest(t)), held: true, now: "B",
			action: Reload, says: "a tracked object modified",
		},
		"only the hash is known, and it never had a content": {
			reason: "No stamp has covered it.",
			known:  Known{Hash: alone, Last: record.New("of another template", newest(t), items{a: item(t, a, "before", "")})}, held: true, now: "A",
			action: Nothing, says: "first seen: the current configuration is adopted as the running one", adopt: []reference.Ref{a},
		},
		"only the hash is known, it never had a content, another object changes": {
			reason: "It holds nothing but itself.",
			known:  Known{Hash: alone, Last: record.New("of another template", newest(t), items{a: item(t, a, "before", "")})}, held: true, now: "B",
			action: Reload, says: "a tracked object modified",
		},
		"only the hash is known, which is that of the others": {
			reason: "No stamp has covered it: the Record of the others is rebuilt.",
			known:  Known{Hash: alone}, held: true, now: "A",
			action: Nothing, says: "first seen: the current configuration is adopted as the running one", adopt: []reference.Ref{a},
		},
		"only the hash is known, which is not that of the others": {
			reason: "The hash may cover it.",
			known:  Known{Hash: alone}, held: true, now: "B",
			action: Nothing, says: "waiting for kafkaproxies.kroxylicious.io/p: secret/tls is missing",
		},
		"only the hash is known, what it was last is under another key": {
			reason: "One hash is under one key.",
			known:  undone(oldest(t)), held: true, now: "A",
			action: Nothing, says: "waiting for kafkaproxies.kroxylicious.io/p: secret/tls is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Input{
				Intent: intent(annotation.Trigger{}, a, proxy), Known: c.known, Ring: digesttest.Ring(t, "12"),
				Current: map[reference.Ref]digest.State{a: state(t, a, c.now, "2"), proxy: custom(t, "P")},
			}
			if c.held {
				in.Current[proxy] = heldState()
			}
			got := Assess(in)
			assert.Equal(t, c.action, got.Verdict.Action, c.reason)
			assert.Equal(t, c.says, got.Verdict.Reason, c.reason)
			assert.Equal(t, c.adopt, got.Verdict.Adopt, c.reason)
			assert.Empty(t, got.Reads, "reading does not end a hold")
			rec, err := got.Adopt(in, "")
			require.NoError(t, err)
			assert.Len(t, rec.Items(c.adopt), len(c.adopt), "also what is held: its next content is then a Change")
		})
	}
}

func TestKeepUnderAnOlderKey(t *testing.T) {
	t.Parallel()
	recorded := itemUnder(t, oldest(t), proxy, "P", "")
	states := map[reference.Ref]digest.State{a: state(t, a, "A", "2"), proxy: heldState()}
	kept, older := known(oldest(t), items{proxy: recorded}).Keep(states, digesttest.Ring(t, "12"))
	assert.Nil(t, states[proxy].Entries, "the states of the caller are not changed")
	entry, ok := kept[proxy].Entry(oldest(t))
	require.True(t, ok, "the kept state has an Entry under the recorded key")
	assert.Equal(t, recorded.Entry, entry.Short())
	signs, _ := older.Newest()
	assert.Equal(t, oldest(t), signs.ID, "one hash is under one key")
	_, err := digest.Hash(signs.ID, kept)
	require.NoError(t, err)

	kept, whole := known("00000000", items{proxy: recorded}).Keep(states, digesttest.Ring(t, "12"))
	assert.True(t, kept[proxy].Withheld(), "what was recorded under a lost key cannot be kept")
	assert.True(t, whole.Equal(digesttest.Ring(t, "12")), "nothing is kept, so that the ring is not restricted to one key")
}

// The hash covers what is held: it can be compared only if the last content of that is known under the same key.
func TestHashIsIncomparableWhileOneIsHeldUnderAnotherKey(t *testing.T) {
	t.Parallel()
	hash := digest.HashRecorded("1c9e04ab", map[reference.Ref]string{proxy: "0123456789abcdef"})
	held := map[reference.Ref]digest.State{a: state(t, a, "A", "2"), proxy: heldState()}
	under := func(key digest.KeyID) record.Record {
		return record.New("def", key, items{proxy: {Entry: "0123456789abcdef"}})
	}
	for name, c := range map[string]struct {
		known Known
		now   map[reference.Ref]digest.State
		want  bool
	}{
		"nothing is known":           {Known{}, held, false},
		"a valid Record":             {Known{Record: under("2b2b2b2b")}, held, false},
		"no hash":                    {Known{Last: under("2b2b2b2b")}, held, false},
		"no Record":                  {Known{Hash: hash}, held, false},
		"a Record under the key":     {Known{Hash: hash, Last: under("1c9e04ab")}, held, false},
		"a Record under another key": {Known{Hash: hash, Last: under("2b2b2b2b")}, held, true},
		"nothing is held": {
			Known{Hash: hash, Last: under("2b2b2b2b")}, map[reference.Ref]digest.State{a: state(t, a, "A", "2"), proxy: custom(t, "P")}, false,
		},
	} {
		assert.Equal(t, c.want, c.known.Incomparable(c.now), name)
	}
}

//nolint:paralleltest // it counts allocations
func TestKeepCostsNothingWhereNothingIsHeld(t *testing.T) {
	states := map[reference.Ref]digest.State{a: state(t, a, "A", "2")}
	k, r := known(newest(t), items{a: item(t, a, "A", "")}), digesttest.Ring(t, "12")
	assert.Zero(t, testing.AllocsPerRun(10, func() { k.Keep(states, r) }))
}

// A hash over withheld Refs is that of the others, so that a stamp is possible meanwhile.
func TestNewRecordLeavesOutWhatIsWithheld(t *testing.T) {
	t.Parallel()
	in := Input{
		Intent: intent(every, a, proxy), Ring: digesttest.Ring(t, "12"),
		Current: map[reference.Ref]digest.State{a: state(t, a, "A", "2"), proxy: heldState()},
	}
	hash, err := digest.Hash(newest(t), in.Current)
	require.NoError(t, err)
	alone, err := digest.Hash(newest(t), digest.Subset(in.Current, []reference.Ref{a}))
	require.NoError(t, err)
	assert.Equal(t, alone, hash)
	fresh, err := NewRecord(in, hash, false)
	require.NoError(t, err)
	assert.Equal(t, []reference.Ref{a}, fresh.Refs())
}
