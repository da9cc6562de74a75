package history

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func counted(steps []Step) map[string]int {
	counts := map[string]int{}
	for _, s := range steps {
		counts[s.Do]++
	}
	return counts
}

func TestDrawFollowsWeightsAndOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options DrawOptions
		want    map[string]bool
	}{
		"acts only":          {DrawOptions{}, map[string]bool{"edit": true, "rare": true}},
		"with faults":        {DrawOptions{Faults: true}, map[string]bool{"edit": true, "rare": true, "kill": true}},
		"server-side apply":  {DrawOptions{SSA: true}, map[string]bool{"edit": true, "rare": true, "ssa": true}},
		"weights by name":    {DrawOptions{Weights: map[string]int{"edit": 0, "ssa": 1}}, map[string]bool{"rare": true, "ssa": true}},
		"no fault by weight": {DrawOptions{Weights: map[string]int{"kill": 9, "rare": -1}}, map[string]bool{"edit": true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.options.Steps = 500
			counts := counted(Draw(source(1), toys(), test.options))
			for _, e := range toys() {
				assert.Equal(t, test.want[e.Name], counts[e.Name] > 0, e.Name)
			}
		})
	}
}

func TestDrawPrefersHeavyEntries(t *testing.T) {
	t.Parallel()
	counts := counted(Draw(source(1), toys(), DrawOptions{Steps: 1000}))
	assert.InDelta(t, 900, counts["edit"], 40)
}

func TestDrawIsDeterministicAndChecked(t *testing.T) {
	t.Parallel()
	o := DrawOptions{Steps: 50, Faults: true}
	first, second := Draw(source(3), toys(), o), Draw(source(3), toys(), o)
	assert.Equal(t, first, second)
	assert.NotEqual(t, Draw(source(3), toys(), o), Draw(source(4), toys(), o))
	assert.NoError(t, toys().Check(History{Steps: Draw(source(3), toys(), o)}))
}

func TestDrawFromNothingIsEmpty(t *testing.T) {
	t.Parallel()
	assert.Empty(t, Draw(source(1), nil, DrawOptions{Steps: 5}))
}

func TestWaitsOverlapAndSettle(t *testing.T) {
	t.Parallel()
	r := source(1)
	var none, short, seconds, long, minutes int
	for range 2000 {
		switch wait := Mixed.draw(r); {
		case wait == 0:
			none++
		case wait < time.Second:
			short++
		case wait < 10*time.Second:
			seconds++
		case wait < time.Minute:
			long++
		default:
			minutes++
			require.LessOrEqual(t, wait, 6*time.Minute)
		}
	}
	for _, n := range []int{none, short, seconds, long} {
		assert.Greater(t, n, 80)
	}
	assert.Positive(t, minutes)
	assert.Less(t, minutes, 100)
}

func TestPaceIsThatOfTheHistory(t *testing.T) {
	t.Parallel()
	mean := func(p Pace) time.Duration {
		r, sum := source(1), time.Duration(0)
		for range 1000 {
			sum += p.draw(r)
		}
		return sum / 1000
	}
	assert.Less(t, 2*mean(Quick), mean(Mixed))
	assert.Less(t, 2*mean(Mixed), mean(Calm))
}
