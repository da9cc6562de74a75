package simulate

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
)

// TestSieve applies the three patterns at every place of the reference histories.
func TestSieve(t *testing.T) {
	t.Parallel()
	list := known(t)
	files, err := filepath.Glob(filepath.Join("testdata", "reference", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		h, err := history.Read(file, Catalogue())
		require.NoError(t, err)
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			run := runner(t)
			plain := run(h)
			require.Empty(t, list.Unknown(plain.Violations), "as it is, the history breaks no law")
			require.Positive(t, plain.Writes)
			for pattern, variants := range map[string][]history.History{
				"crash": Crashes(h, plain.Writes), "time travel": TimeTravels(h), "unobserved": Unobserved(h),
			} {
				for i, variant := range variants {
					if i%(thin*thin) != 0 {
						continue
					}
					t.Run(fmt.Sprintf("%s %d", pattern, i+1), func(t *testing.T) {
						result := run(variant)
						if unknown := list.Unknown(result.Violations); len(unknown) > 0 {
							t.Error(words(variant, unknown))
						}
						assert.Positive(t, result.Judged["quiet"])
					})
				}
			}
		})
	}
}
