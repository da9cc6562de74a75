package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTry(t *testing.T) {
	t.Parallel()
	const still, even = tolerated, tolerated - 1
	tests := map[string]struct {
		right []bool
		stood time.Duration
		why   string
	}{
		"right":                     {[]bool{true}, even, "there is nothing to try again"},
		"right in spite of all":     {[]bool{true}, still, "what is right is right"},
		"wrong":                     {[]bool{false}, even, "time is no excuse"},
		"wrong, then right":         {[]bool{false, true}, still, "the first attempt showed nothing"},
		"wrong again and again":     {[]bool{false, false, false}, still, "in the end it is wrong"},
		"right in the last attempt": {[]bool{false, false, true}, still, "that is enough"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := 0
			attempt := func() bool { made++; return test.right[made-1] }
			try(t, attempt, func() func() time.Duration { return func() time.Duration { return test.stood } })
			assert.Len(t, test.right, made, test.why)
		})
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		longest := watch()
		<-time.After(time.Minute)
		assert.Zero(t, longest(), "fake time stands still for nobody")
	})
	begun := time.Now()
	longest := watch()
	<-time.After(time.Second / 10)
	assert.LessOrEqual(t, longest(), time.Since(begun), "it is not later than the end")
}
