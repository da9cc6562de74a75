package poll

import (
	"context"
	"errors"
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
	takes := func(d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
			return errors.New("no")
		}
	}
	tests := map[string]struct {
		asks []func(context.Context) error
		want time.Duration
		why  string
	}{
		"nothing is asked": {nil, 0, "fake time does not stall"},
		"prompt answers":   {[]func(context.Context) error{takes(answer), takes(0)}, 0, "they are in time, and a refusal is an answer"},
		"a late answer":    {[]func(context.Context) error{takes(0), takes(answer + time.Second)}, time.Second, "one process has stalled"},
		"no answer":        {[]func(context.Context) error{takes(time.Hour)}, time.Minute - answer, "it is not there at the end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				longest := stalls(t.Context(), test.asks...)
				<-time.After(time.Minute)
				assert.Equal(t, test.want, longest(), test.why)
			})
		})
	}
	begun := time.Now()
	longest := stalls(t.Context())
	<-time.After(time.Second / 10)
	assert.LessOrEqual(t, longest(), time.Since(begun), "it is not later than the end")
}
