// Package unraced leaves tests out under the race detector.
package unraced

import "testing"

// Test ends a test under the race detector, which would make it several times as slow, and show there nothing that it does not show in
// smaller tests: one about large inputs, or about hours of fake time. make test runs it without the race detector, which is why the Makefile
// names its package as THINNED.
func Test(t *testing.T) {
	t.Helper()
	leaveOut(t)
}
