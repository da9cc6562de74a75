package record_test

import (
	"fmt"
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
	other := reference.Ref{Kind: reference.ConfigMap, Name: refs[0].Name}
	named := record.New("abc", digest.KeyID("0a0b0c0d"), items)
	assert.ElementsMatch(t, refs, named.Refs())
	text, fits := named.Text(record.MaxSize)
	require.True(t, fits)
	compact, err := record.Parse(text)
	require.NoError(t, err)
	assert.Empty(t, compact.Refs(), "a compact Record has no names")
	for name, r := range map[string]record.Record{"named": named, "compact": compact} {
		assert.True(t, r.Has(refs[7]), name)
		assert.False(t, r.Has(other), name)
	}
	assert.Empty(t, record.Record{}.Refs())
	assert.False(t, record.Record{}.Has(other))
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
