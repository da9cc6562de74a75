package simulate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

func TestOnlyHistoriesWithFaultsHaveRestores(t *testing.T) {
	t.Parallel()
	restores := func(faults bool) (n int) {
		for seed := range uint64(5) {
			for _, s := range Draw(seed, DrawOptions{Steps: 60, Faults: faults, Theme: "restores"}).Steps {
				if s.Do == restoreEtcd {
					n++
				}
			}
		}
		return n
	}
	assert.Positive(t, restores(true))
	assert.Zero(t, restores(false))
}

// The first edit is lost, and made again while the program is cut off.
func TestRestoreOfEtcdIsJudged(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	edit := history.Step{
		Do: editConfig, On: "configmaps/shop/app", Wait: history.Duration(time.Second),
		With: map[string]string{"key": "app.properties", "value": "x"},
	}
	h := history.History{Form: history.Form, Seed: 1, Setup: history.Setup{Replicas: 1}, Steps: []history.Step{
		edit,
		{Do: restoreEtcd, Wait: history.Duration(5 * time.Second), With: map[string]string{"by": "20s", "for": "2s"}},
		edit,
	}}
	require.NoError(t, Catalogue().Check(h))
	p, err := startProcess(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { p.end() })
	o, err := p.do(job{History: h, Verbose: true})
	require.NoError(t, err)
	assert.Empty(t, o.Violations)
	assert.Equal(t, 1, o.Tried[restoreEtcd])
	assert.Equal(t, 1, o.Judged["restores"])
	assert.True(t, slices.ContainsFunc(o.Journal, func(line string) bool {
		return strings.Contains(line, "configmaps/shop/app changed by the restore") && strings.Contains(line, `data.app.properties: "x" →`)
	}), "the edit is lost")
}

func TestRestoreWaitsForTheWatchesOfProcessesThatRun(t *testing.T) {
	t.Parallel()
	s := &simulation{slots: []*slot{{current: &replica{name: "replica-0.1"}}, {}}}
	assert.True(t, s.runs("replica-0.1"), "the process has not ended")
	assert.False(t, s.runs("replica-1.1"), "it has ended")
}
