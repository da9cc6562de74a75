package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]int, 0, 100)
	for n := range 100 {
		hundred = append(hundred, 100-n)
	}
	for reason, test := range map[string]struct {
		samples []int
		p       float64
		want    int
	}{
		"nothing was measured":                 {nil, 50, 0},
		"one sample is every percentile":       {[]int{7}, 99, 7},
		"the lowest rank is the first":         {[]int{3, 1, 2}, 0, 1},
		"the highest rank is the last":         {[]int{3, 1, 2}, 100, 3},
		"an odd number has one in the middle":  {[]int{9, 1, 5}, 50, 5},
		"an even number takes the lower one":   {[]int{4, 1, 3, 2}, 50, 2},
		"of a hundred the 99th is not the top": {hundred, 99, 99},
		"of a few the 99th is the top":         {[]int{1, 2, 3, 4, 50}, 99, 50},
		"the order in which they came is free": {hundred, 50, 50},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(test.samples)
			assert.Equal(t, test.want, percentile(test.samples, test.p))
			assert.Equal(t, before, test.samples, "the samples stay as they are")
		})
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 2*time.Second, median([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}))
}
