package poll

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRepeat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		conclusive []bool
		want       bool
		why        string
	}{
		"conclusive":       {[]bool{true}, true, "there is nothing to repeat"},
		"at the last":      {[]bool{false, false, true}, true, "one is enough"},
		"never conclusive": {[]bool{false, false, false}, false, "the limit is reached"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			got := Repeat(t, 3, "a test", func(n int) bool {
				assert.Equal(t, made, n)
				made++
				return test.conclusive[n]
			})
			assert.Equal(t, test.want, got, test.why)
			assert.Len(t, test.conclusive, made, test.why)
		})
	}
}

func TestSteadily(t *testing.T) {
	t.Parallel()
	const stalled, even = tolerated, tolerated - 1
	tests := map[string]struct {
		right []bool
		stall time.Duration
		why   string
	}{
		"right":                     {[]bool{true}, even, "there is nothing to repeat"},
		"right in spite of a stall": {[]bool{true}, stalled, "what is right is right"},
		"wrong":                     {[]bool{false}, even, "the machine is no excuse"},
		"wrong, then right":         {[]bool{false, true}, stalled, "the first attempt showed nothing"},
		"wrong again and again":     {[]bool{false, false, false}, stalled, "in the end it is wrong"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			attempt := func() bool { made++; return test.right[made-1] }
			steadily(t, attempt, func() func() time.Duration { return func() time.Duration { return test.stall } })
			assert.Len(t, test.right, made, test.why)
		})
	}
}

func TestStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		longest := stalls()
		<-time.After(time.Minute)
		assert.Zero(t, longest(), "fake time does not stall")
	})
	begun := time.Now()
	longest := stalls()
	<-time.After(time.Second / 10)
	assert.LessOrEqual(t, longest(), time.Since(begun), "it is not later than the end")
}
