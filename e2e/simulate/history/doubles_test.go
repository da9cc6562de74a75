package history

import (
	"errors"
	"math/rand/v2"
	"strconv"
)

// toys is a catalogue with an act, a rare act, one of server-side apply and a fault.
func toys() Catalogue {
	entry := func(name string) Entry {
		return Entry{
			Name: name,
			Draw: func(r *rand.Rand, before []Step) Step {
				return Step{On: strconv.Itoa(len(before)), With: map[string]string{"n": strconv.Itoa(r.IntN(9))}}
			},
			Words: func(s Step) string { return name + " " + s.On },
			Check: func(s Step) error {
				if s.With["n"] == "" {
					return errors.New("with.n: missing")
				}
				return nil
			},
		}
	}
	edit, rare, ssa, kill := entry("edit"), entry("rare"), entry("ssa"), entry("kill")
	edit.Weight, rare.Weight, ssa.WeightSSA, kill.Weight, kill.Fault = 9, 1, 2, 5, true
	return Catalogue{edit, rare, ssa, kill}
}
