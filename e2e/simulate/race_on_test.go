//go:build race

package simulate

import "testing"

// thin leaves out most histories where the race detector makes each ten times as slow: without it, all are run.
const thin = 8

// unraced leaves out a test that runs nothing of the program.
func unraced(t *testing.T) {
	t.Helper()
	t.Skip("it runs nothing of the program: it is run without the race detector")
}
