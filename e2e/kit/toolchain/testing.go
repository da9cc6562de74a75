package toolchain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// RootOf is Root for tests, which it ends where there is no root.
func RootOf(t testing.TB) string {
	t.Helper()
	dir, err := Root()
	require.NoError(t, err)
	return dir
}
