package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func adopted(i record.Item) record.Item {
	i.Adopted = true
	return i
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	c := reference.Ref{Kind: reference.Secret, Name: "c"}
	for name, tc := range map[string]struct {
		reason string
		known  Known
		now    map[reference.Ref]digest.State
		want   record.Record
	}{
		"first seen": {
			reason: "All is adopted, absence too.",
			now:    map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: state(t, b, "-", "")},
			want:   record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2")), b: {Adopted: true}}),
		},
		"one more": {
			reason: "What is known stays as it is, a Change that is due included.",
			known:  known(newest(t), items{a: item(t, a, "A", "1")}),
			now:    map[reference.Ref]digest.State{a: state(t, a, "B", "2"), b: state(t, b, "B", "2")},
			want:   record.New("abc", newest(t), items{a: item(t, a, "A", "1"), b: adopted(item(t, b, "B", "2"))}),
		},
		"one more, under an older key": {
			reason: "A Record has one key.",
			known:  known(oldest(t), items{a: itemUnder(t, oldest(t), a, "A", "2")}),
			now:    map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: state(t, b, "B", "2")},
			want:   record.New("abc", oldest(t), items{a: itemUnder(t, oldest(t), a, "A", "2"), b: adopted(itemUnder(t, oldest(t), b, "B", "2"))}),
		},
		"a lost key": {
			reason: "All is adopted again; only absence can stay.",
			known:  known("00000000", items{a: {Entry: "0000000000000000"}, b: {}}),
			now:    map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: state(t, b, "-", "")},
			want:   record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2")), b: {}}),
		},
		"a lost key while one is held": {
			reason: "What is held is adopted later; the others do not wait for that.",
			known:  known("00000000", items{a: {Entry: "0000000000000000"}, b: {Entry: "0000000000000000"}}),
			now:    map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: {Hold: &digest.Hold{Reason: "not-ready"}}},
			want:   record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2"))}),
		},
		"not tracked any more": {
			reason: "The pods have it still. Where it is tracked again, it is compared with that, under the key of the Record.",
			known:  known(oldest(t), items{c: {Entry: "0000000000000000"}}),
			now:    map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: state(t, b, "-", "")},
			want: record.New("abc", oldest(t), items{
				a: adopted(itemUnder(t, oldest(t), a, "A", "2")), b: {Adopted: true}, c: {Entry: "0000000000000000"},
			}),
		},
		"not tracked any more, under a lost key": {
			reason: "It can never be compared.",
			known:  known("00000000", items{c: {Entry: "0000000000000000"}}),
			now:    map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: state(t, b, "-", "")},
			want:   record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2")), b: {Adopted: true}}),
		},
		"a custom resource that is not tracked any more": {
			reason: "While it is not known which are tracked, those that are recorded are.",
			known:  known(newest(t), items{{Kind: "proxies.example.org", Name: "edge"}: {Entry: "0000000000000000"}}),
			now:    map[reference.Ref]digest.State{a: state(t, a, "A", "2"), b: state(t, b, "-", "")},
			want:   record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2")), b: {Adopted: true}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Input{Intent: intent(every, a, b), Known: tc.known, Current: tc.now, Ring: digesttest.Ring(t, "12")}
			got, err := Assess(in).Adopt(in, "abc")
			require.NoError(t, err)
			assert.Equal(t, tc.want.String(), got.String(), tc.reason)
		})
	}
}

func TestTheHashRebuildsTheRecord(t *testing.T) {
	t.Parallel()
	in := input(t, "", "A")
	hash, err := digest.Hash(oldest(t), in.Current)
	require.NoError(t, err)
	in.Known = KnownOf(hash)
	got, err := Assess(in).Adopt(in, hash)
	require.NoError(t, err)
	assert.Equal(t, record.New(hash, newest(t), items{a: item(t, a, "A", "2")}).String(), got.String(), "the pods were started with it")
}

func TestNewRecordHasTheCurrentState(t *testing.T) {
	t.Parallel()
	in := input(t, "B", "A")
	stamped, err := NewRecord(in, "abc", false)
	require.NoError(t, err)
	assert.Equal(t, record.New("abc", newest(t), items{a: item(t, a, "A", "2")}).String(), stamped.String())
	taken, err := NewRecord(in, "abc", true)
	require.NoError(t, err)
	assert.Equal(t, record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2"))}).String(), taken.String())
}

func TestNotifiedRecordKeepsWhatIsHidden(t *testing.T) {
	t.Parallel()
	in := input(t, "B", "A")
	got, err := RecordNotified(in, "abc")
	require.NoError(t, err)
	assert.Equal(t, record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2"))}).String(), got.String(), "as NewRecord")
	in.Known = known(newest(t), items{a: item(t, a, "B", "1"), b: item(t, b, "B", "1")})
	got, err = RecordNotified(in, "abc")
	require.NoError(t, err)
	assert.Equal(t, record.New("abc", newest(t), items{a: adopted(item(t, a, "A", "2")), b: item(t, b, "B", "1")}).String(), got.String())
}

// An expression that creations do not trigger selects names that are used once: their recorded absence would fill the Record.
func TestHiddenAbsenceIsKeptUnlessExpressionsSelectAndCreationsDoNotTrigger(t *testing.T) {
	t.Parallel()
	all, err := pattern.Compile(".*")
	require.NoError(t, err)
	patterns, created := []*pattern.Pattern{all}, annotation.Trigger{OnCreate: true}
	absent := record.New("abc", newest(t), items{a: item(t, a, "A", "2"), b: {}})
	without := record.New("abc", newest(t), items{a: item(t, a, "A", "2")})
	for name, tc := range map[string]struct {
		selections []annotation.Selection
		want       record.Record
	}{
		"no selection":                       {want: absent},
		"expressions":                        {[]annotation.Selection{{Kind: reference.ConfigMap, Patterns: patterns}}, without},
		"expressions that creations trigger": {[]annotation.Selection{{Kind: reference.ConfigMap, Patterns: patterns, Trigger: created}}, absent},
		"expressions of another kind":        {[]annotation.Selection{{Kind: reference.Secret, Patterns: patterns}}, absent},
		"names":                              {[]annotation.Selection{{Kind: reference.ConfigMap, Listed: []string{"a"}}}, absent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, "A", "A")
			in.Known = Known{Record: absent}
			in.Intent.Selections = tc.selections
			got, err := Assess(in).Adopt(in, "abc")
			require.NoError(t, err)
			assert.Equal(t, tc.want.String(), got.String())
		})
	}
}

func TestNewRecordLeavesOutWhatIsWithheldAndNothingElse(t *testing.T) {
	t.Parallel()
	in := Input{Intent: intent(every, a, b), Ring: digesttest.Ring(t, "12"), Current: map[reference.Ref]digest.State{
		a: {Hold: &digest.Hold{Reason: "not-ready"}}, b: state(t, b, "B", "2"),
	}}
	got, err := NewRecord(in, "abc", false)
	require.NoError(t, err)
	assert.Equal(t, record.New("abc", newest(t), items{b: item(t, b, "B", "2")}).String(), got.String())
}

func TestAdoptErrs(t *testing.T) {
	t.Parallel()
	in := input(t, "", "")
	_, err := Assess(in).Adopt(in, "")
	require.EqualError(t, err, "the content of configmap/a has not been read")
	in.Ring = digest.Ring{}
	_, err = Assess(in).Adopt(in, "")
	require.ErrorIs(t, err, digest.ErrNoKey)
}
