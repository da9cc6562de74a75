package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
)

// program returns a hunter that is a shell script. Nothing is started while that is written: until a child of this process has
// become another program, it has what is open here, and a program that is open for writing cannot be started.
func program(t *testing.T, script string) hunter {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hunt")
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700))
	return hunter{file: file}
}

func TestHuntReturnsTheFirstFinding(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		want   finding
		err    string
	}{
		"nothing is found": {script: "exit 0"},
		"a law is broken":  {script: "echo 'kept/undo by seed 12: deployments/shop/cart: it lost its pods'; exit 1", want: finding{"kept/undo", 12}},
		"the search fails by itself": {
			script: "echo 'no such file' >&2; exit 1", err: "without a finding",
		},
		"the seed is the one asked for": {script: `echo "current by seed $3: a: b"; exit 1`, want: finding{"current", 7}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := program(t, tc.script).hunt(t.Context(), 7, 1, time.Minute)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestSeedThatFailsWithoutTheFaultProvesNothing(t *testing.T) {
	t.Parallel()
	o := settings{limit: time.Minute, n: 5, seed: 1}
	faulty := program(t, `[ "$3" -gt 4 ] && exit 0; echo "kept by seed $3: a: b"; exit 1`)
	sound := program(t, `[ "$3" -gt 2 ] && exit 0; echo "idle by seed $3: a: b"; exit 1`)
	anyLaw := simulate.Planted{}.Is
	got, err := o.search(t.Context(), sound, faulty, anyLaw)
	require.NoError(t, err)
	assert.Equal(t, finding{"kept", 3}, got.finding)

	got, err = o.search(t.Context(), faulty, faulty, anyLaw)
	require.NoError(t, err)
	assert.Empty(t, got.law, "each seed fails without the fault")
}

func TestAnotherLawThanThatOfTheFaultProvesNothing(t *testing.T) {
	t.Parallel()
	o := settings{limit: time.Minute, n: 5, seed: 1}
	faulty := program(t, `[ "$3" -lt 4 ] && { echo "jobs/runs by seed $3: a: b"; exit 1; }; echo "jobs/run/twice by seed $3: a: b"; exit 1`)
	got, err := o.search(t.Context(), program(t, "exit 0"), faulty, simulate.Planted{Law: "jobs/run"}.Is)
	require.NoError(t, err)
	assert.Equal(t, finding{"jobs/run/twice", 4}, got.finding)
}

func TestSearchEndsAfterItsHistoriesOrItsTime(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		settings settings
		seed     uint64
		spent    time.Duration
		n        int
		left     time.Duration
	}{
		"all histories are left":  {settings{n: 5, seed: 10, limit: time.Minute}, 10, time.Hour, 5, time.Minute},
		"some histories are left": {settings{n: 5, seed: 10, limit: time.Minute}, 13, 0, 2, time.Minute},
		"no history is left":      {settings{n: 5, seed: 10, limit: time.Minute}, 15, 0, 0, 0},
		"some time is left":       {settings{seed: 1, limit: time.Minute}, 900, 20 * time.Second, 0, 40 * time.Second},
		"no time is left":         {settings{seed: 1, limit: time.Minute}, 900, time.Minute, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, left := tc.settings.left(tc.seed, tc.spent)
			assert.Equal(t, tc.n, n)
			assert.Equal(t, tc.left, left)
		})
	}
}

func TestArgumentsChooseAmongTheFaults(t *testing.T) {
	t.Parallel()
	all := []simulate.Planted{{Name: "settle-ignored"}, {Name: "refractory-ignored"}, {Name: "wrong-key-used"}}
	tests := map[string]struct {
		args []string
		want int
		err  string
	}{
		"all":                   {nil, 3, ""},
		"some":                  {[]string{"-only", "ignored$"}, 2, ""},
		"none of this name":     {[]string{"-only", "nosuchfault"}, 0, "-only nosuchfault: matches none of the 3 names in testdata/planted.yaml, such as settle-ignored"},
		"no expression":         {[]string{"-only", "("}, 0, "-only: error parsing regexp"},
		"name without -only":    {[]string{"settle-ignored"}, 0, `unexpected argument "settle-ignored"; -only chooses`},
		"number of histories":   {[]string{"-n", "-1"}, 0, "-n -1: want a number"},
		"time that is negative": {[]string{"-for", "-1m"}, 0, "-for -1m0s: want a time"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := readArguments(tc.args, all)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			assert.Len(t, o.faults, tc.want)
		})
	}
}

func TestArgumentsOfAHunt(t *testing.T) {
	t.Parallel()
	assert.Empty(t, argumentsFor(simulate.Planted{}))
	assert.Equal(t, []string{"-restarts"}, argumentsFor(simulate.Planted{Restarts: true}))
	assert.Equal(t, []string{"-flags", "--webhook=false --settle=2s"}, argumentsFor(simulate.Planted{Flags: []string{"--webhook=false", "--settle=2s"}}))
	assert.Equal(t, []string{"-graph", "-situation", "created"}, argumentsFor(simulate.Planted{Graph: true, Situation: "created"}))
	assert.Equal(t, []string{"-theme", "self-heal"}, argumentsFor(simulate.Planted{Theme: "self-heal"}))
}
