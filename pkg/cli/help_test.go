package cli

import (
	"bytes"
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
