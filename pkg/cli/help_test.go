package cli

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// ofFlag is the begin of a line about a flag, or of one that continues its text.
	ofFlag      = regexp.MustCompile(`^  (    |-\w, --)`)
	twoDefaults = regexp.MustCompile(`\(default[^()]*\)\s+\(default`)
)

// The library that wraps the texts of flags does not wrap what follows a word that is longer than a line.
func TestTextsOfFlagsAreWrapped(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "check", "clean", "graph", "plan", "roles", "version", "why"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			p := Process{Args: append(strings.Fields(command), "--help"), Stdout: &out, Stderr: &errs, Getenv: unset}
			require.Zero(t, Run(t.Context(), p), errs.String())
			assert.NotRegexp(t, twoDefaults, out.String())
			checked := 0
			for line := range strings.Lines(out.String()) {
				line = strings.TrimRight(line, "\n")
				if !ofFlag.MatchString(line) {
					continue
				}
				checked++
				if strings.Contains(strings.TrimSpace(line), " ") {
					assert.LessOrEqual(t, len(line), helpWidth, line)
				}
			}
			assert.NotZero(t, checked)
		})
	}
}

// A user looks for the flags of the command. Those of the installation are many, and rarely given.
func TestFlagsOfTheInstallationAreApart(t *testing.T) {
	t.Parallel()
	for command, own := range map[string][]string{
		"why":   {"--all", "--namespace", "--output", "--installation-name", "--installation-namespace"},
		"graph": {"--namespace", "--output", "--installation-name"},
		"clean": {"--all", "--selector", "--dry-run", "--installation-name"},
		"check": {"--annotation-prefix", "--labels"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			require.Zero(t, Run(t.Context(), Process{Args: []string{command, "--help"}, Stdout: &out, Stderr: io.Discard, Getenv: unset}))
			_, flags, found := strings.Cut(out.String(), "\nFlags:\n")
			require.True(t, found, out.String())
			ofCommand, ofInstallation, apart := strings.Cut(flags, "\nFlags of the installation")
			for _, flag := range own {
				assert.Contains(t, ofCommand, flag+" ")
				assert.NotContains(t, ofInstallation, flag+" ")
			}
			assert.Equal(t, command != "check", apart, "check takes none over")
			if apart {
				assert.NotContains(t, ofCommand, "--annotation-prefix ")
				assert.Contains(t, ofInstallation, "--annotation-prefix ")
			}
		})
	}
}
