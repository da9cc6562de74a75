package plan

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A row about a rule has its Reason in a comment, which the page does not show.
func TestEachRuleHasARowInThePageAboutMigrating(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/migrating-from-reloader.md")
	require.NoError(t, err)
	for _, reason := range rules() {
		assert.Regexp(t, `(?m)^\|.* <!-- plan: `+string(reason)+` -->.*\|$`, string(page))
	}
}
