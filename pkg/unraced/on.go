//go:build race

package unraced

import "testing"

func leaveOut(t *testing.T) {
	t.Helper()
	t.Skip("it takes long under the race detector: it is run without it")
}
