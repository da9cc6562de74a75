package simulate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

func TestSlowActsAreInFewHistories(t *testing.T) {
	t.Parallel()
	const seeds = 200
	slow, with := act.Slow(), 0
	for seed := range uint64(seeds) {
		h := Draw(seed, DrawOptions{Steps: 100, Faults: true})
		if slices.ContainsFunc(h.Steps, func(s history.Step) bool { return slices.Contains(slow, s.Do) }) {
			with++
		}
	}
	assert.Positive(t, with)
	assert.Less(t, with, seeds/20)
}
