package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

var (
	a = reference.Ref{Kind: reference.ConfigMap, Name: "a"}
	b = reference.Ref{Kind: reference.ConfigMap, Name: "b"}
)

// oldest and newest return the ids of the ring's keys.
func oldest(t testing.TB) digest.KeyID {
	t.Helper()
	return digesttest.Ring(t, "12").Keys()[0].ID
}

func newest(t testing.TB) digest.KeyID {
	t.Helper()
	return digesttest.Ring(t, "12").Keys()[1].ID
}

// state is an object with a content under a resourceVersion; without content it was not read, as "-" it is absent.
func state(t testing.TB, ref reference.Ref, content, rv string) digest.State {
	t.Helper()
	switch content {
	case "-":
		return digest.State{Absent: true}
	case "":
		return digest.State{UID: "u", ResourceVersion: rv}
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ref.Name}, Data: map[string]string{"k": content}}
	return digest.StateOf(digest.OfConfigMap(object), "u", rv, digesttest.Ring(t, "12"))
}

// item is what is recorded of a content under the newest key.
func item(t testing.TB, ref reference.Ref, content, hint string) record.Item {
	t.Helper()
	return itemUnder(t, newest(t), ref, content, hint)
}

func itemUnder(t testing.TB, id digest.KeyID, ref reference.Ref, content, hint string) record.Item {
	t.Helper()
	if content == "-" {
		return record.Item{}
	}
	entry, ok := state(t, ref, content, "1").Entry(id)
	require.True(t, ok, "the state has an Entry under the key")
	return record.Item{Entry: entry.Short(), Hint: hint}
}

type items = map[reference.Ref]record.Item

// known is a Record of a template without a hash.
func known(id digest.KeyID, recorded items) Known {
	return Known{Record: record.New("", id, recorded)}
}

func intent(trigger annotation.Trigger, refs ...reference.Ref) annotation.Intent {
	i := annotation.Intent{Asked: true, Tracked: map[reference.Ref]annotation.Trigger{}}
	for _, ref := range refs {
		i.Tracked[ref] = trigger
	}
	return i
}

var every = annotation.Trigger{OnCreate: true, OnDelete: true}

// input tracks a, whose known and current contents are given.
func input(t testing.TB, before, now string) Input {
	t.Helper()
	in := Input{
		Intent: intent(every, a), Required: map[reference.Ref]bool{}, Ring: digesttest.Ring(t, "12"),
		Current: map[reference.Ref]digest.State{a: state(t, a, now, "2")},
	}
	if before != "" {
		in.Known = known(newest(t), items{a: item(t, a, before, "1")})
	}
	return in
}

// unobserved takes all knowledge away, as when nothing may be watched.
func unobserved(in *Input) { in.Current = map[reference.Ref]digest.State{} }

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, now string
		change     func(*Input)
		action     Action
		reason     string
		changes    []Change
		adopt      []reference.Ref
	}{
		"equal content":    {"A", "A", nil, Nothing, "the pods have the current configuration", nil, nil},
		"modified":         {"A", "B", nil, Reload, "configmap/a modified", []Change{{a, Modified}}, nil},
		"created":          {"-", "A", nil, Reload, "configmap/a created", []Change{{a, Created}}, nil},
		"deleted":          {"A", "-", nil, Reload, "configmap/a deleted", []Change{{a, Deleted}}, nil},
		"absent as before": {"-", "-", nil, Nothing, "the pods have the current configuration", nil, nil},
		"unknown":          {"", "A", nil, Nothing, "first seen: the current configuration is adopted as the running one", nil, []reference.Ref{a}},
		"nothing is asked": {"A", "B", func(in *Input) { in.Intent = annotation.Intent{} }, Nothing, "no annotation asks for reloads", nil, nil},
		"nothing possible was asked": {
			"A", "B", func(in *Input) { in.Intent = annotation.Intent{Asked: true} }, Nothing,
			"the annotations select no object", nil, nil,
		},
		"never observed, recorded as absent":      {"-", "A", unobserved, Nothing, "the pods have the current configuration", nil, nil},
		"never observed, recorded with a content": {"A", "-", unobserved, Nothing, "the pods have the current configuration", nil, nil},
		"not read counts as unchanged":            {"A", "", nil, Nothing, "the pods have the current configuration", nil, nil},
		"the hint agrees, whatever the entry": {
			"A", "B", func(in *Input) { in.Current[a] = state(t, a, "B", "1") }, Nothing, "the pods have the current configuration", nil, nil,
		},
		"created, required: pods wait for it": {
			"-", "A", func(in *Input) { in.Required[a] = true }, Nothing,
			"first seen: the current configuration is adopted as the running one", nil,
			[]reference.Ref{a},
		},
		"created, but creations do not trigger": {
			"-", "A", func(in *Input) { in.Intent = intent(annotation.Trigger{}, a) }, Nothing,
			"first seen: the current configuration is adopted as the running one", nil,
			[]reference.Ref{a},
		},
		"deleted, but deletions do not trigger": {
			"A", "-", func(in *Input) { in.Intent = intent(annotation.Trigger{}, a) }, Nothing,
			"the pods have the current configuration", nil, nil,
		},
		"deleted, required": {
			"A", "-", func(in *Input) { in.Required[a] = true }, Hold,
			"new pods could not start: configmap/a deleted; create it again, or make the reference optional",
			[]Change{{a, Deleted}},
			nil,
		},
		"deleted, required, the trigger includes missing ones": {
			"A", "-", func(in *Input) {
				in.Required[a] = true
				in.Intent = intent(annotation.Trigger{OnDelete: true, OnMissing: true}, a)
			}, Reload,
			"configmap/a deleted",
			[]Change{{a, Deleted}},
			nil,
		},
		"deleted, required, --missing-required=reload": {
			"A", "-", func(in *Input) { in.Required[a], in.ReloadMissingRequired = true, true }, Reload,
			"configmap/a deleted",
			[]Change{{a, Deleted}},
			nil,
		},
		"a required object is gone by a deletion that does not trigger, and another one changed": {
			"A", "-", func(in *Input) {
				in.Intent, in.Required[a] = intent(annotation.Trigger{}, a, b), true
				in.Known = known(newest(t), items{a: item(t, a, "A", "1"), b: item(t, b, "A", "1")})
				in.Current[b] = state(t, b, "B", "2")
			}, Hold,
			"new pods could not start: configmap/a deleted; create it again, or make the reference optional",
			[]Change{{a, Deleted}},
			nil,
		},
		"a change and something unknown": {
			"A", "B", func(in *Input) {
				in.Intent.Tracked[b], in.Current[b] = every, state(t, b, "A", "2")
			}, Reload, "configmap/a modified", []Change{{a, Modified}}, []reference.Ref{b},
		},
		"recorded under an older key of the ring": {
			"A", "A", func(in *Input) { in.Known = known(oldest(t), items{a: itemUnder(t, oldest(t), a, "A", "1")}) }, Nothing,
			"the pods have the current configuration", nil, nil,
		},
		"changed, recorded under an older key": {
			"A", "B", func(in *Input) { in.Known = known(oldest(t), items{a: itemUnder(t, oldest(t), a, "A", "1")}) }, Reload,
			"configmap/a modified",
			[]Change{{a, Modified}},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, c.known, c.now)
			if c.change != nil {
				c.change(&in)
			}
			v := Assess(in).Verdict
			assert.Equal(t, Verdict{Action: c.action, Reason: c.reason, Changes: c.changes, Adopt: c.adopt}, v)
		})
	}
}

func TestRecordUnderALostKeyIsAdopted(t *testing.T) {
	t.Parallel()
	in := input(t, "A", "B")
	in.Intent.Tracked[b], in.Current[b] = every, state(t, b, "B", "2")
	in.Known = known("00000000", items{a: {Entry: "0000000000000000", Hint: "2"}, b: {}})
	v := Assess(in).Verdict
	assert.Equal(t, []reference.Ref{a}, v.Adopt, "what cannot be compared restarts nothing")
	assert.Equal(t, digest.KeyID("00000000"), v.Foreign)
	assert.Equal(t, []Change{{b, Created}}, v.Changes, "absence is under every key")
	assert.Empty(t, in.Known.Unknown([]reference.Ref{a, b}), "it is not unknown: the webhook leaves it to the loop")
}

func TestRecordOfANewerVersionIsNotJudged(t *testing.T) {
	t.Parallel()
	in := input(t, "", "B")
	in.Known = KnownOf("abc", "v2:whatever")
	assert.Equal(t, Known{Newer: true}, in.Known)
	got := Assess(in)
	assert.Equal(t, Nothing, got.Verdict.Action)
	assert.Contains(t, got.Verdict.Reason, "upgrade")
	assert.Empty(t, got.Verdict.Adopt)
	assert.Empty(t, got.Reads)
	assert.Empty(t, in.Known.Unknown([]reference.Ref{a}))
}

func TestKnownOf(t *testing.T) {
	t.Parallel()
	one, other := record.New("abc", "1c9e04ab", items{a: {}}), record.New("def", "1c9e04ab", items{b: {}})
	for name, c := range map[string]struct {
		hash    string
		records []string
		want    Known
	}{
		"nothing":                     {"", nil, Known{}},
		"the hash alone":              {"abc", nil, Known{Hash: "abc"}},
		"its Record":                  {"abc", []string{one.String()}, Known{Record: one}},
		"another template's Record":   {"abc", []string{other.String()}, Known{Hash: "abc", Last: other}},
		"there is no first":           {"abc", []string{"", one.String()}, Known{Record: one}},
		"the second belongs to it":    {"abc", []string{other.String(), one.String()}, Known{Record: one}},
		"no hash, and a Record of it": {"", []string{record.New("", "1c9e04ab", items{a: {}}).String()}, Known{Record: record.New("", "1c9e04ab", items{a: {}})}},
		"no hash, another's Record":   {"", []string{one.String()}, Known{Last: one}},
		"the first of two others":     {"ghi", []string{other.String(), one.String()}, Known{Hash: "ghi", Last: other}},
		"unreadable":                  {"abc", []string{"v1:abc"}, Known{Hash: "abc"}},
		"the empty Record":            {"abc", []string{"v1:abc::"}, Known{Record: record.New("abc", "", nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, KnownOf(c.hash, c.records...))
		})
	}
}

func TestKnownKey(t *testing.T) {
	t.Parallel()
	hash := digest.HashRecorded("1c9e04ab", map[reference.Ref]string{a: "0123456789abcdef"})
	for name, c := range map[string]struct {
		known Known
		want  digest.KeyID
	}{
		"nothing is known":               {known: Known{}},
		"the Record":                     {known: Known{Record: record.New(hash, "2b", items{a: {}})}, want: "2b"},
		"the hash alone":                 {known: Known{Hash: hash}, want: "1c9e04ab"},
		"the hash of another program":    {known: Known{Hash: "abc"}},
		"the Record of another template": {known: Known{Hash: hash, Last: record.New("def", "2b", items{a: {}})}, want: "1c9e04ab"},
	} {
		assert.Equal(t, c.want, c.known.Key(), name)
	}
}

// Each check decides on its own terms only.
func TestChecksDecideOnTheirOwnTermsOnly(t *testing.T) {
	t.Parallel()
	change, missing := []Change{{a, Modified}}, []Change{{b, Deleted}}
	in := Input{Intent: intent(every, a)}
	for name, c := range map[string]struct {
		check  check
		in     Input
		found  findings
		action Action
		speaks bool
	}{
		"notAsked, asked":                   {notAsked, in, findings{}, Nothing, false},
		"notAsked, not asked":               {notAsked, Input{}, findings{}, Nothing, true},
		"nothingTracked, tracked":           {nothingTracked, in, findings{}, Nothing, false},
		"nothingTracked, none":              {nothingTracked, Input{}, findings{}, Nothing, true},
		"newerRecord, a newer one":          {newerRecord, Input{Known: Known{Newer: true}}, findings{}, Nothing, true},
		"newerRecord, one of ours":          {newerRecord, in, findings{changes: change}, Nothing, false},
		"holdMissing, missing and a change": {holdMissing, in, findings{changes: change, missing: missing}, Hold, true},
		"holdMissing, nothing to hold":      {holdMissing, in, findings{missing: missing}, Nothing, false},
		"holdMissing, nothing missing":      {holdMissing, in, findings{changes: change}, Nothing, false},
		"holdMissing, switched off":         {holdMissing, Input{ReloadMissingRequired: true}, findings{changes: change, missing: missing}, Nothing, false},
		"reloadChanged, a change":           {reloadChanged, in, findings{changes: change}, Reload, true},
		"reloadChanged, none":               {reloadChanged, in, findings{adopt: []reference.Ref{a}}, Nothing, false},
		"firstSeen, something":              {firstSeen, in, findings{adopt: []reference.Ref{a}}, Nothing, true},
		"firstSeen, nothing":                {firstSeen, in, findings{}, Nothing, false},
		"upToDate always speaks":            {upToDate, in, findings{}, Nothing, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			action, _, reason := c.check(c.in, c.found)
			assert.Equal(t, c.speaks, reason != "")
			if c.speaks {
				assert.Equal(t, c.action, action)
			}
		})
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known  string
		change func(*Input)
		want   []reference.Ref
	}{
		"the hint agrees":                         {"A", func(in *Input) { in.Current[a] = state(t, a, "", "1") }, nil},
		"another revision":                        {"A", func(*Input) {}, []reference.Ref{a}},
		"read already":                            {"A", func(in *Input) { in.Current[a] = state(t, a, "A", "2") }, nil},
		"no hint":                                 {"A", func(in *Input) { in.Known = known(newest(t), items{a: item(t, a, "A", "")}) }, []reference.Ref{a}},
		"absent":                                  {"A", func(in *Input) { in.Current[a] = state(t, a, "-", "") }, nil},
		"created and it triggers":                 {"-", func(*Input) {}, nil},
		"created and it is adopted":               {"-", func(in *Input) { in.Required[a] = true }, []reference.Ref{a}},
		"unknown":                                 {"", func(*Input) {}, []reference.Ref{a}},
		"foreign, although the hint says":         {"A", func(in *Input) { in.Known = known("00000000", items{a: {Entry: "0", Hint: "2"}}) }, []reference.Ref{a}},
		"never observed, recorded as absent":      {"-", unobserved, []reference.Ref{a}},
		"never observed, recorded with a content": {"A", unobserved, []reference.Ref{a}},
		"never observed, unknown":                 {"", unobserved, []reference.Ref{a}},
		"what is not adopted need not be read": {"A", func(in *Input) {
			in.Current[a] = state(t, a, "", "1")
			in.Intent.Tracked[b], in.Current[b] = every, state(t, b, "", "1")
		}, []reference.Ref{b}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, c.known, "")
			c.change(&in)
			assert.Equal(t, c.want, Assess(in).Reads)
		})
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	refs := []reference.Ref{a, b}
	assert.Equal(t, refs, Known{}.Unknown(refs))
	assert.Equal(t, refs, Known{Hash: "abc"}.Unknown(refs))
	assert.Equal(t, []reference.Ref{b}, known("1c9e04ab", items{a: {}}).Unknown(refs))
	assert.Equal(t, []reference.Ref{a, b}, refs, "the argument stays as it is")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	var changes []Change
	for i := range reference.MaxNamed + 2 {
		changes = append(changes, Change{reference.Ref{Kind: reference.Secret, Name: fmt.Sprint("s", i)}, Modified})
	}
	assert.Empty(t, Describe(nil))
	assert.Equal(t, "secret/s0 modified, secret/s1 modified, secret/s2 modified", Describe(changes[:3]))
	many := Describe(changes)
	assert.True(t, strings.HasSuffix(many, ", secret/s7 modified and 2 more"), many)
	assert.Equal(t, "a tracked object modified", Describe([]Change{{Any, Modified}}))
}
