//go:build race

package simulate

import "testing"

// thin leaves out most histories where the race detector makes each ten times as slow: without it, all are run.
const thin = 8

// unraced leaves out a test that shows nothing of the program.
func unraced(t *testing.T) {
	t.Helper()
	t.Skip("it is about the simulator, not about the program: it is run without the race detector")
}
