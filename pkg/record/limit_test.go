package record_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// What is just possible is read; TestParseRejects and TestParseLastReload have what is beyond.
func TestParseTakesTheLimits(t *testing.T) {
	t.Parallel()
	const head = "v1:abc:1c9e04ab:"
	entry := "=9a0c4f1122334455"
	longest := head
	for i := 0; record.MaxSize-len(longest) > 280; i++ {
		longest += fmt.Sprintf("configmap/%0100d%s,", i, entry)
	}
	longest += "configmap/" + strings.Repeat("a", record.MaxSize-len(longest)-len("configmap/"+entry)-len(",secret/b=-")) + entry
	longest += ",secret/b=-"
	for name, text := range map[string]string{
		"as long as possible":                  longest,
		"a resourceVersion of every character": head + "configmap/a" + entry + "@09azAZ",
		"a long resourceVersion":               head + "configmap/a" + entry + "@" + strings.Repeat("1", 64),
		"compact, the first hash":              head + "*A" + strings.Repeat("A", 23),
		"compact, the last hash":               head + "*_" + "_____" + strings.Repeat("A", 18),
		"compact, the next hash":               head + "*A" + strings.Repeat("A", 23) + "AAAAB" + strings.Repeat("A", 18),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := record.Parse(text)
			assert.NoError(t, err)
		})
	}
	assert.Len(t, longest, record.MaxSize)
	_, err := record.Parse(longest + ",")
	assert.ErrorContains(t, err, "24577 bytes")
}

func TestParseNamesTheWrongPart(t *testing.T) {
	t.Parallel()
	const head = "v1:abc:1c9e04ab:"
	for name, c := range map[string]struct{ text, err string }{
		"no Ref in front of the entry": {head + "=9a0c4f1122334455", "kind"},
		"a version of one":             {"v01:abc::", `it has version "v01"`},
		"the second compact item":      {head + "*A" + strings.Repeat("A", 23) + strings.Repeat("!", 23), "compact item 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := record.Parse(c.text)
			require.ErrorContains(t, err, c.err)
			assert.NotContains(t, err.Error(), "it is not of the form")
		})
	}
}

func TestParseLastReloadTakesTheLimits(t *testing.T) {
	t.Parallel()
	const form = `{"time":%q,"hash":%q,"cause":%q,"more":%d}`
	for name, text := range map[string]string{
		"the first year":      fmt.Sprintf(form, "0001-01-01T00:00:00Z", "a", "b", 0),
		"the last year":       fmt.Sprintf(form, "9999-12-31T23:59:59Z", "a", "b", 1<<30),
		"all visible letters": fmt.Sprintf(form, "2026-01-01T00:00:00Z", "!~", strings.Repeat("b", 320), 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := record.ParseLastReload(text)
			require.NoError(t, err)
			_, err = record.ParseLastReload(text + strings.Repeat(" ", record.MaxSize-len(text)))
			require.NoError(t, err)
			_, err = record.ParseLastReload(text + strings.Repeat(" ", record.MaxSize-len(text)+1))
			assert.ErrorContains(t, err, "24577 bytes")
		})
	}
	_, err := record.ParseLastReload(fmt.Sprintf(form, "2026-01-01T00:00:00Z", "a b", "c", 0))
	assert.ErrorContains(t, err, "is not a word")
}

// Of two Refs with the same hash, neither is known: an item could be that of the other.
func TestCompactItemOfCollidingRefsIsUnknown(t *testing.T) {
	t.Parallel()
	r := many(t, reference.MaxTracked)
	_, items, _ := strings.Cut(r.String(), ":*")
	salt := byte(strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", items[0]))
	recorded := map[uint32]reference.Ref{}
	for i := range reference.MaxTracked {
		recorded[compactHash(salt, manyRef(i))] = manyRef(i)
	}
	for i := 0; ; i++ {
		other := configMap(fmt.Sprintf("other-%d", i))
		known, collides := recorded[compactHash(salt, other)]
		if !collides {
			continue
		}
		assert.Contains(t, r.Items([]reference.Ref{known, known}), known, "the same twice is no collision")
		assert.NotContains(t, r.Items([]reference.Ref{other, known}), known)
		assert.NotContains(t, r.Items([]reference.Ref{known, other}), known)
		next := manyRef(0)
		if next == known {
			next = manyRef(1)
		}
		assert.Contains(t, r.Items([]reference.Ref{known, other, next}), next, "those behind them are known")
		return
	}
}

func compactHash(salt byte, ref reference.Ref) uint32 {
	sum := sha256.Sum256(append([]byte{salt}, ref.String()...))
	return binary.BigEndian.Uint32(sum[:4]) >> 2
}
