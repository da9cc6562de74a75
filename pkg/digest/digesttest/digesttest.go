// Package digesttest has digest keys for tests.
package digesttest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// Ring returns a ring of keys that are made of one character each. The last one signs.
func Ring(t testing.TB, keys string) digest.Ring {
	t.Helper()
	data := map[string][]byte{}
	for i, c := range []byte(keys) {
		data[string(rune('0'+i))] = bytes.Repeat([]byte{c}, 32)
	}
	ring, err := digest.NewRing(data)
	require.NoError(t, err)
	return ring
}
