package simulate

import "math/rand/v2"

// ahead is how far a replay looks for a decision that can be made now. Between two runs of a seed, some requests come in
// another order.
const ahead = 32

// trace is the list of decisions: it is recorded, or followed.
type trace struct {
	// follow has the decisions of an earlier run.
	follow []string
	made   []string
	// strayed counts decisions that the earlier run did not make.
	strayed int
}

// choose takes the decision that the trace says, or else the one that the seed says.
func (t *trace) choose(choices []choice, random *rand.Rand) choice {
	n := random.IntN(len(choices)) // always drawn, so that a trace that ends leaves the seed where it was
	if i, ok := t.next(choices); ok {
		n = i
	} else if len(t.follow) > 0 {
		t.strayed++
	}
	t.made = append(t.made, choices[n].name)
	return choices[n]
}

func (t *trace) next(choices []choice) (int, bool) {
	for skip := range min(ahead, len(t.follow)) {
		for i, c := range choices {
			if c.name == t.follow[skip] {
				t.follow = t.follow[skip+1:]
				return i, true
			}
		}
	}
	return 0, false
}
