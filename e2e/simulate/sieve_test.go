package simulate

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// TestFaultsAtEachPlaceOfTheReferenceHistoriesBreakNoLaw applies the three patterns at every place of the reference histories. Their seeds are multiples of thoroughOf: the
// program gets all of the time to recover, so that each pod is judged although there was a fault.
func TestFaultsAtEachPlaceOfTheReferenceHistoriesBreakNoLaw(t *testing.T) {
	t.Parallel()
	list := known(t)
	files, err := filepath.Glob(filepath.Join("testdata", "reference", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	// Most lists are of the present: some histories have no place at which the program reads a state behind.
	var behind atomic.Int64
	t.Cleanup(func() {
		if thin == 1 {
			assert.Positive(t, behind.Load(), "time travel: the count of %s shows that it never came about", readsBehind)
		}
	})
	for _, file := range files {
		h, err := history.Read(file, Catalogue())
		require.NoError(t, err)
		require.Zero(t, h.Seed%thoroughOf, file)
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			run := runner(t)
			plain := run(h)
			require.Empty(t, list.Unknown(plain.Violations), "as it is, the history breaks no law")
			require.Positive(t, plain.Writes)
			for pattern, p := range map[string]struct {
				variants []history.History
				// shown counts that the pattern came about.
				shown string
			}{
				"crash":       {Crashes(h, plain.Writes), killedAtWrite},
				"time travel": {TimeTravels(h), readsBehind},
				"unobserved":  {Unobserved(h), statesFolded},
			} {
				shown := 0
				for i, variant := range p.variants {
					if i%(thin*thin) != 0 {
						continue
					}
					t.Run(fmt.Sprintf("%s %d", pattern, i+1), func(t *testing.T) {
						result := run(variant)
						if unknown := list.Unknown(result.Violations); len(unknown) > 0 {
							t.Error(words(variant, unknown))
						}
						assert.Positive(t, result.Judged["pods judged"])
						shown += result.Judged[p.shown]
					})
				}
				if p.shown == readsBehind {
					behind.Add(int64(shown))
				} else if thin == 1 { // of few variants, none may meet what it is about
					assert.Positive(t, shown, "%s: the count of %s shows that it never came about", pattern, p.shown)
				}
			}
		})
	}
}
