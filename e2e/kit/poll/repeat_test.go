package poll

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRepeat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reasons []string
		want    bool
		noted   []string
		why     string
	}{
		"conclusive":       {[]string{""}, true, nil, "there is nothing to repeat"},
		"at the last":      {[]string{"a", "b", ""}, true, []string{"attempt 1 of 3 shows nothing: a", "attempt 2 of 3 shows nothing: b"}, "one is enough"},
		"never conclusive": {[]string{"a", "b", "c"}, false, []string{"attempt 1 of 3 shows nothing: a", "attempt 2 of 3 shows nothing: b", "attempt 3 of 3 shows nothing: c"}, "the limit is reached"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			var noted []string
			got := repeat(3, func(text string) { noted = append(noted, text) }, func(n int) string {
				assert.Equal(t, made, n)
				made++
				return test.reasons[n]
			})
			assert.Equal(t, test.want, got, test.why)
			assert.Equal(t, test.noted, noted, "each inconclusive attempt is noted")
			assert.Len(t, test.reasons, made, test.why)
		})
	}
	assert.True(t, Repeat(t, 1, "", func(int) bool { return true }), "the first attempt is conclusive")
}

func TestSteadily(t *testing.T) {
	t.Parallel()
	const stalled, even = tolerated, tolerated - 1
	wrong := errors.New("wrong")
	tests := map[string]struct {
		outcomes []error
		stall    time.Duration
		noted    int
		why      string
	}{
		"right":                     {[]error{nil}, even, 0, "there is nothing to repeat"},
		"right in spite of a stall": {[]error{nil}, stalled, 0, "what is right is right"},
		"wrong":                     {[]error{wrong}, even, 0, "the machine is no excuse"},
		"wrong, then right":         {[]error{wrong, nil}, stalled, 1, "the first attempt showed nothing"},
		"wrong again and again":     {[]error{wrong, wrong, wrong}, stalled, 3, "in the end it is wrong"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			var noted []string
			attempt := func() error { made++; return test.outcomes[made-1] }
			got := steadily(func(text string) { noted = append(noted, text) }, attempt, func() func() time.Duration { return func() time.Duration { return test.stall } })
			assert.Len(t, test.outcomes, made, test.why)
			assert.Equal(t, test.outcomes[made-1], got, "the last outcome counts")
			require.Len(t, noted, test.noted, test.why)
			for _, text := range noted {
				assert.Contains(t, text, "the machine stalled for 250ms, and it was wrong: wrong")
			}
		})
	}
}

func TestStallIsMeasuredByLateAnswers(t *testing.T) {
	t.Parallel()
	takes := func(d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			if d == 0 { // a timer of no duration can break the race detector of Go 1.26
				return errors.New("no")
			}
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
