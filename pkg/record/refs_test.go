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
