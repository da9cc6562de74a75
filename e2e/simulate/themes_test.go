package simulate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestThemesReplaceNoFault(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, theme := range themes() {
		for _, act := range theme.acts {
			if e, _ := Catalogue().Find(act); e.Weight == 0 { // others are in most histories
				names = append(names, act)
			}
		}
	}
	replacesNoFault(t, func(seed uint64, c history.Catalogue, steps []history.Step) []history.Step {
		return themeOf(seed, "").replace(seed, history.Setup{}, c, steps)
	}, names...)
}

func TestEachHistoryCanHaveATheme(t *testing.T) {
	t.Parallel()
	for _, theme := range themes() {
		acts := 0
		for seed := range uint64(5) {
			for _, s := range Draw(seed, DrawOptions{Steps: 60, Faults: true, Theme: theme.name}).Steps {
				for _, name := range theme.acts {
					if s.Do == name {
						acts++
						break
					}
				}
			}
		}
		least := 10
		if theme.faults {
			least = 5
		}
		assert.Greater(t, acts, least, theme.name)
	}
}

// A theme has a random stream of its own: its histories have faults of lists as often as others.
func TestFewHistoriesOfAThemeHaveFaultsOfLists(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	with, without := 0, 0
	for seed := range uint64(200) {
		if themeOf(seed, "").name == "" {
			continue
		}
		steps := Draw(seed, DrawOptions{Steps: 60, Faults: true}).Steps
		if slices.ContainsFunc(steps, func(s history.Step) bool { return s.Do == stopLists }) {
			with++
		} else {
			without++
		}
	}
	assert.Positive(t, with)
	assert.Greater(t, without, 2*with)
}
