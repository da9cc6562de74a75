package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// theme is a set of acts by which some histories replace some steps. They have no weight, so that they shift no other choice of a seed.
type theme struct {
	name string
	acts []string
	// suit adapts the installation; nil changes nothing.
	suit func(r *rand.Rand, s *history.Setup)
	// second adds a second installation; nil adds none.
	second func(r *rand.Rand, s *history.Setup)
	// adapt adapts a step of the theme to the installation; nil changes nothing.
	adapt func(s history.Setup, step history.Step)
	// faults means that the acts are faults, of which few are enough: they replace fewer steps, in histories with faults only.
	faults bool
}

func themes() []theme {
	return []theme{
		{name: "deletions", acts: []string{act.DeleteForeground, act.DeleteForeground, act.DeleteOrphan}},
		{name: "kustomize", acts: []string{act.KustomizeRelease}},
		{name: "self-heal", acts: []string{act.SelfHeal}, adapt: healsAsServed},
		{name: "reloader", acts: []string{act.ReloaderReloads}, suit: besideReloader, adapt: reloadsAsReloader},
		{name: "namespaces", acts: []string{act.DeleteNamespace}},
		{name: "restores", acts: []string{restoreEtcd}, faults: true},
		{name: "stripped", acts: []string{strippingWebhook}, faults: true},
		{name: "sides", acts: []string{act.LabelWorkload, act.LabelWorkload, "release", "relabel-namespace"}, second: divided},
		{name: "shared", acts: []string{act.LabelWorkload, "release", "relabel-namespace"}, second: shared},
	}
}

// faultOf is how many steps there are for each that a fault of a theme replaces.
const faultOf = 15

// themesOf is how many histories there are for each that has a given theme.
const themesOf = 15

// ThemeNames has the names that DrawOptions.Theme may be.
func ThemeNames() []string {
	var names []string
	for _, t := range themes() {
		names = append(names, t.name)
	}
	return names
}

// themeOf returns the theme of a name, or else the one that the seed draws; in most histories none.
func themeOf(seed uint64, name string) theme {
	all := themes()
	i := slices.IndexFunc(all, func(t theme) bool { return t.name == name })
	if name == "" {
		i = rand.New(rand.NewPCG(seed, 20)).IntN(themesOf)
	}
	if i < 0 || i >= len(all) {
		return theme{}
	}
	return all[i]
}

// theme returns the theme of the history of a seed.
func (o DrawOptions) theme(seed uint64) theme {
	if t := themeOf(seed, o.Theme); o.Faults || !t.faults {
		return t
	}
	return theme{}
}

// install adapts the installation of a history to its theme.
func (t theme) install(seed uint64, s *history.Setup) {
	if t.suit != nil {
		t.suit(rand.New(rand.NewPCG(seed, 21)), s)
	}
}

// replace replaces some steps by acts of the theme.
func (t theme) replace(seed uint64, s history.Setup, c history.Catalogue, steps []history.Step) []history.Step {
	if len(t.acts) == 0 {
		return steps
	}
	r := rand.New(rand.NewPCG(seed, 19))
	if t.faults {
		return replaceEach(r, faultOf, c, steps, t.acts...)
	}
	steps = replaceSome(r, 1, c, steps, t.acts...)
	for _, step := range steps {
		if t.adapt != nil && slices.Contains(t.acts, step.Do) {
			t.adapt(s, step)
		}
	}
	return steps
}

// healsAsServed has a controller apply on the server only where that tracks field managers.
func healsAsServed(s history.Setup, step history.Step) {
	if step.With[act.HealBy] == act.HealOnServer && !s.TrackFields {
		step.With[act.HealBy] = "apply"
	}
}

// besideReloader has the program write what Reloader writes: each would restart the pods else. Without a webhook they do so in any case.
func besideReloader(r *rand.Rand, s *history.Setup) {
	s.Flags = slices.DeleteFunc(slices.Clone(s.Flags), func(flag string) bool { return flag == directFlag })
	if !slices.ContainsFunc(s.Flags, func(flag string) bool { return strings.HasPrefix(flag, strategyFlag) }) {
		s.Flags = append(s.Flags, strategyFlag+[]string{"env-vars", "annotations"}[r.IntN(2)])
	}
}

// reloadsAsReloader has Reloader write by the strategy of the installation.
func reloadsAsReloader(s history.Setup, step history.Step) {
	for _, flag := range s.Flags {
		if value, is := strings.CutPrefix(flag, strategyFlag); is {
			step.With[act.ReloaderStrategy] = value
		}
	}
}
