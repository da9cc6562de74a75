package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"file without -replay": {[]string{"history.json"}, `unexpected argument "history.json"; -replay runs a file`},
		"number of histories":  {[]string{"-n", "-1"}, "-n -1: want"},
		"no steps":             {[]string{"-steps", "0"}, "-steps 0: want"},
		"no workers":           {[]string{"-workers", "0"}, "-workers 0: want"},
		"negative shrinking":   {[]string{"-shrink", "-1"}, "-shrink -1: want"},
		"unknown situation":    {[]string{"-situation", "dance"}, "-situation dance: want one of deletion-unseen,"},
		"no time":              {[]string{"-for", "0s"}, "-for 0s: want"},
		"unknown flag":         {[]string{"-flags", "--nonsense"}, "-flags of pod-reloader: --nonsense: unknown flag"},
		"flags that disagree":  {[]string{"-flags", "--settle=9s --settle-max=3s"}, "-flags of pod-reloader: "},
		"profile into nowhere": {[]string{"-cpuprofile", "/none/such/file"}, "-cpuprofile: stat /none/such: no such file"},
		"verbose hunt":         {[]string{"-v"}, "-v needs -replay"},
		"seed of a file":       {[]string{"-replay", "h.json", "-seed", "7"}, "-seed does not go with -replay"},
		"flags of a file":      {[]string{"-v", "-replay", "h.json", "-flags", "--settle=0s"}, "-flags does not go with -replay"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tc.args)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestArgumentsThatMakeSenseAreAccepted(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		nil,
		{"-seed", "7", "-n", "50", "-steps", "40", "-faults=false", "-for", "2m"},
		{"-replay", "h.json", "-v"},
		{"-flags", "--hash=revision --settle=0s", "-cpuprofile", t.TempDir() + "/cpu"},
	} {
		o, err := parse(args)
		require.NoError(t, err, args)
		assert.NotZero(t, o.seed, args)
	}
}
