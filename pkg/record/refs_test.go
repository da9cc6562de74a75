package record_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestRefsOfRecord(t *testing.T) {
	t.Parallel()
	items := map[reference.Ref]record.Item{}
	var refs []reference.Ref
	for i := range 900 {
		ref := reference.Ref{Kind: reference.Secret, Name: fmt.Sprintf("a-name-of-some-length-%d", i)}
		refs = append(refs, ref)
		items[ref] = record.Item{Entry: fmt.Sprintf("%016x", i+1)}
	}
	absent := refs[8]
	items[absent] = record.Item{}
	other := reference.Ref{Kind: reference.ConfigMap, Name: refs[0].Name}
	named := record.New("abc", digest.KeyID("0a0b0c0d"), items)
	assert.ElementsMatch(t, refs, named.Refs())
	text, fits := named.Text(record.MaxSize)
	require.True(t, fits, "the Record fits into its largest size")
	compact, err := record.Parse(text)
	require.NoError(t, err)
	assert.Empty(t, compact.Refs(), "a compact Record has no names")
	for name, r := range map[string]record.Record{"named": named, "compact": compact} {
		for ref, want := range map[reference.Ref]struct{ has, content bool }{refs[7]: {true, true}, absent: {true, false}, other: {}} {
			assert.Equal(t, want.has, r.Has(ref), "%s: %s", name, ref)
			assert.Equal(t, want.content, r.HasContent(ref), "%s: %s", name, ref)
		}
	}
	assert.Empty(t, record.Record{}.Refs())
	assert.False(t, record.Record{}.Has(other), "it has no items")
}

func TestOnly(t *testing.T) {
	t.Parallel()
	a, b := reference.Ref{Kind: reference.ConfigMap, Name: "a"}, reference.Ref{Kind: reference.Secret, Name: "b"}
	item := record.Item{Entry: "0123456789abcdef", Adopted: true, Hint: "7"}
	key := digest.KeyID("0a0b0c0d")
	both := record.New("abc", key, map[reference.Ref]record.Item{a: item, b: {}})
	compact := many(t, 1000)
	for name, tc := range map[string]struct {
		reason string
		of     record.Record
		refs   []reference.Ref
		want   record.Record
	}{
		"all":     {reason: "The text is the same.", of: both, refs: []reference.Ref{a, b}, want: both},
		"one":     {reason: "The other is unknown.", of: both, refs: []reference.Ref{a}, want: record.New("abc", key, map[reference.Ref]record.Item{a: item})},
		"none":    {reason: "It is the empty Record of the same template.", of: both, want: record.New("abc", "", nil)},
		"compact": {reason: "It has no names.", of: compact, refs: []reference.Ref{a}, want: compact},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want.String(), tc.of.Only(tc.refs).String(), tc.reason)
		})
	}
	assert.Equal(t, "v1:abc:0a0b0c0d:configmap/a~0123456789abcdef@7,secret/b=-", both.String(), "the argument stays as it is")
}

// Where all names do not fit, the items of other Refs go first, and the rest keeps its names.
func TestTextForLeavesOutOtherRefsFirst(t *testing.T) {
	t.Parallel()
	a, b := reference.Ref{Kind: reference.ConfigMap, Name: "a"}, reference.Ref{Kind: reference.Secret, Name: "b"}
	item, key := record.Item{Entry: "0123456789abcdef"}, digest.KeyID("0a0b0c0d")
	both := record.New("abc", key, map[reference.Ref]record.Item{a: item, b: item})
	one := record.New("abc", key, map[reference.Ref]record.Item{a: item})
	compactOf := func(of record.Record) string {
		text, _ := of.Text(0)
		return text
	}
	compact, err := record.Parse(compactOf(both))
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		reason string
		of     record.Record
		refs   []reference.Ref
		limit  int
		want   string
		fits   bool
	}{
		"all fit": {
			reason: "None is left out.", of: both, refs: []reference.Ref{a}, limit: len(both.String()), want: both.String(), fits: true,
		},
		"one byte too few": {
			reason: "The other one is left out.", of: both, refs: []reference.Ref{a}, limit: len(both.String()) - 1, want: one.String(), fits: true,
		},
		"too few for one": {
			reason: "It loses its name, too.", of: both, refs: []reference.Ref{a}, limit: len(one.String()) - 1, want: compactOf(one), fits: true,
		},
		"none is given": {
			reason: "All count.", of: both, limit: len(both.String()) - 1, want: compactOf(both), fits: true,
		},
		"compact": {
			reason: "It has no names.", of: compact, refs: []reference.Ref{a}, limit: len(compactOf(both)), want: compactOf(both), fits: true,
		},
		"nothing fits": {
			reason: "There is no shorter form.", of: both, refs: []reference.Ref{a}, want: compactOf(one),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, fits := tc.of.TextFor(tc.refs, tc.limit)
			assert.Equal(t, tc.want, text, tc.reason)
			assert.Equal(t, tc.fits, fits, tc.reason)
		})
	}
}

func TestSameContents(t *testing.T) {
	t.Parallel()
	a, key := reference.Ref{Kind: reference.ConfigMap, Name: "a"}, digest.KeyID("0a0b0c0d")
	of := func(hash string, item record.Item) record.Record {
		return record.New(hash, key, map[reference.Ref]record.Item{a: item})
	}
	have := of("abc", record.Item{Entry: "0123456789abcdef", Adopted: true, Hint: "7"})
	for name, tc := range map[string]struct {
		other record.Record
		want  bool
	}{
		"another version": {other: of("abc", record.Item{Entry: "0123456789abcdef", Hint: "8"}), want: true},
		"another content": {other: of("abc", record.Item{Entry: "0123456789abcdee", Adopted: true, Hint: "7"})},
		"absent":          {other: of("abc", record.Item{Adopted: true})},
		"of another hash": {other: of("abd", record.Item{Entry: "0123456789abcdef", Adopted: true, Hint: "7"})},
		"nothing":         {other: record.New("abc", "", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, have.SameContents(tc.other))
			assert.Equal(t, tc.want, tc.other.SameContents(have))
		})
	}
	assert.True(t, many(t, 1000).SameContents(many(t, 1000)), "compact")
	assert.False(t, many(t, 1000).SameContents(many(t, 999)), "compact")
	assert.Equal(t, "7", have.Items([]reference.Ref{a})[a].Hint, "the Record stays as it is")
}

func TestWithoutHints(t *testing.T) {
	t.Parallel()
	a, b := reference.Ref{Kind: reference.ConfigMap, Name: "a-name-of-some-length-1"}, reference.Ref{Kind: reference.ConfigMap, Name: "a-name-of-some-length-2"}
	rec := record.New("abc", "0011aabb", map[reference.Ref]record.Item{
		a: {Entry: strings.Repeat("a", 16), Hint: "7"}, b: {Entry: strings.Repeat("b", 16), Hint: "9"},
	})
	named, _ := rec.Text(record.MaxSize)
	compact, fits := rec.Text(len(named) - 1)
	require.True(t, fits, "the compact form fits")
	for name, text := range map[string]string{"named": named, "compact": compact} {
		before, err := record.Parse(text)
		require.NoError(t, err, name)
		after := before.WithoutHints(func(hint string) bool { return hint == "9" })
		assert.Equal(t, map[reference.Ref]record.Item{
			a: {Entry: strings.Repeat("a", 16), Hint: "7"}, b: {Entry: strings.Repeat("b", 16)},
		}, after.Items([]reference.Ref{a, b}), name)
		assert.Equal(t, text, before.String(), "%s: the Record itself stays", name)
		assert.Equal(t, text, before.WithoutHints(func(string) bool { return false }).String(), "%s: nothing to drop", name)
	}
}
