package simulate

import (
	"math/rand/v2"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// theme is a set of acts by which some histories replace some steps. They have no weight, so that they shift no other choice of a seed.
type theme struct {
	name string
	acts []string
}

func themes() []theme {
	return []theme{
		{"deletions", []string{act.DeleteForeground, act.DeleteForeground, act.DeleteOrphan}},
		{"kustomize", []string{act.KustomizeRelease}},
	}
}

// themesOf is how many histories there are for each that has a given theme.
const themesOf = 6

// ThemeNames has the names that DrawOptions.Theme may be.
func ThemeNames() []string {
	var names []string
	for _, t := range themes() {
		names = append(names, t.name)
	}
	return names
}

// themed replaces some steps by acts of one theme: the one with a name, or else one that the seed draws; in most histories none.
func themed(seed uint64, name string, c history.Catalogue, steps []history.Step) []history.Step {
	r, all := rand.New(rand.NewPCG(seed, 17)), themes()
	i := slices.IndexFunc(all, func(t theme) bool { return t.name == name })
	if name == "" {
		i = r.IntN(themesOf)
	}
	if i < 0 || i >= len(all) {
		return steps
	}
	return replaceSome(r, 1, c, steps, all[i].acts...)
}
