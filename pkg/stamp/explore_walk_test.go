package stamp

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
)

// walks is how many random sequences are played from each start, steps how many acts one has.
var (
	walks = flag.Int("walks", 150, "random sequences from each start")
	steps = flag.Int("steps", 10, "acts in a random sequence")
)

// limits are acts that lead to known limits together, where a sequence is long enough. One is an exclusion around a stuck release that is
// rolled back, or around a list that is edited. Others are a release while both annotations are removed, and the loss of a key while a
// required object is away. Each sequence is one without the acts of a row.
func limits() [][]string {
	return [][]string{{"opted", "ignored", "key lost"}, {"opted", "undo", "listed", "key lost"}, {"release", "undo", "ignored", "key lost"}}
}

// Sequences longer than those that can all be played, chosen at random, and the same ones each time. In some the webhook goes and comes.
func TestPromisesHoldInLongSequences(t *testing.T) {
	t.Parallel()
	starts := startedCells()
	starts["Deployment, env-vars"] = startedCell(true, true, false).under(annotation.EnvVars)
	starts["StatefulSet, annotations"] = startedCell(false, true, false).under(annotation.Annotations)
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, uint64(len(name))))
			for _, without := range limits() {
				possible := slices.DeleteFunc(actsAway(), func(a act) bool {
					return slices.ContainsFunc(without, func(word string) bool { return strings.Contains(a.name, word) })
				})
				for range *walks {
					walk(t, start.clone(), possible, random)
				}
			}
		})
	}
}

// walk plays one sequence. Every third act lets the loop settle.
func walk(t *testing.T, c *cell, possible []act, random *rand.Rand) {
	t.Helper()
	for len(c.trace) < *steps {
		a := possible[random.IntN(len(possible))]
		if random.IntN(3) == 0 {
			a = possible[0]
		}
		to := c.clone()
		if !to.step(a) || len(to.revisions) > 6 {
			continue
		}
		require.Empty(t, to.broken, "after:\n  %s\nmarks %v\nrevisions %+v\ncontents %v",
			strings.Join(to.trace, "\n  "), to.managed, to.revisions, to.contents)
		c = to
	}
}
