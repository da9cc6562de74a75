package scenario

import (
	"cmp"
	"math"
	"slices"
)

// percentile is the value that p percent of the samples do not exceed, by the nearest rank; of no samples it is zero.
// The samples may be in any order and stay as they are.
func percentile[T cmp.Ordered](samples []T, p float64) T {
	if len(samples) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median is the 50th [percentile]: of an even number of samples the lower of the two in the middle.
func median[T cmp.Ordered](samples []T) T {
	return percentile(samples, 50)
}
