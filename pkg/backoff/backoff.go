// Package backoff computes how long to wait before an attempt is repeated.
//
// It is one of the pure packages: its users count the attempts, each in its own way.
package backoff

import "time"

// Doubled returns the first wait, doubled a number of times, and at most the longest one.
func Doubled(first, longest time.Duration, times int) time.Duration {
	wait := first
	for range times {
		wait = min(2*wait, longest) // a shift by any number of times would overflow
	}
	return min(wait, longest)
}
