package simulate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

func TestMain(m *testing.M) {
	if IsWorker() {
		RunWorker()
		return
	}
	Prepare()
	flag.Parse()
	os.Exit(m.Run())
}

// fixedSeeds are run by every run of the tests, with and without faults; they must pass.
const fixedSeeds = 12

func known(t *testing.T) Known {
	t.Helper()
	list, err := ReadKnown()
	require.NoError(t, err)
	return list
}

func words(h history.History, violations []oracle.Violation) string {
	var b strings.Builder
	for _, v := range violations {
		fmt.Fprintf(&b, "%s (%s)\n  %s: %s\n", v.Law, v.Signature, v.Subject, v.Text)
	}
	return b.String() + h.Words(Catalogue())
}

// TestSeedsKeepTheLaws runs histories of a fixed range of seeds.
func TestSeedsKeepTheLaws(t *testing.T) {
	t.Parallel()
	certificate, err := newCertificate()
	require.NoError(t, err)
	list := known(t)
	for _, faults := range []bool{false, true} {
		for seed := range uint64(fixedSeeds) {
			t.Run(fmt.Sprintf("seed %d faults %t", seed+1, faults), func(t *testing.T) {
				t.Parallel()
				h := Draw(seed+1, DrawOptions{Steps: 60, Faults: faults})
				result := Run(t, h, certificate, Options{})
				if unknown := list.Unknown(result.Violations); len(unknown) > 0 {
					t.Error(words(h, unknown))
				}
				assert.Positive(t, result.Judged["restarts"], "the history restarts nothing: it shows nothing")
			})
		}
	}
}

// TestKeptHistories replays what was found before. A history that breaks what is known to be broken must go on doing so:
// where it does not, the defect is mended and leaves the list.
func TestKeptHistories(t *testing.T) {
	t.Parallel()
	certificate, err := newCertificate()
	require.NoError(t, err)
	list := known(t)
	files, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			h, err := history.Read(file, Catalogue())
			require.NoError(t, err)
			result := Run(t, h, certificate, Options{})
			if unknown := list.Unknown(result.Violations); len(unknown) > 0 {
				t.Error(words(h, unknown))
			}
		})
	}
}

// TestPlantedFaultsFitTheCode shows that each fault of the list can be planted.
func TestPlantedFaultsFitTheCode(t *testing.T) {
	t.Parallel()
	faults, err := ReadPlanted()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(faults), 20)
	for _, fault := range faults {
		_, _, err := fault.Apply()
		assert.NoError(t, err)
	}
}
