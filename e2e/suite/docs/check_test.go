package docs_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The checks themselves: what is not true must not pass.
func TestCompare(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	tests := map[string]struct {
		reason, text string
		got          result
		wrong        string
	}{
		"Silent":     {"nothing is announced", "true", result{"anything", nil}, ""},
		"Failed":     {"no failure is announced", "false", result{"sorry", failed}, "sorry"},
		"Printed":    {"both texts, in this order", "a\n# prints: one\nb\n  # prints: two", result{"one two", nil}, ""},
		"Unordered":  {"both texts, in another order", "# prints: one\n# prints: two", result{"two one", nil}, `"two" is announced`},
		"Missing":    {"another text", "// prints: one", result{"two", nil}, `"one" is announced`},
		"MeantToo":   {"the failure is the announced one", "# fails: sorry", result{"so sorry", failed}, ""},
		"MeantOther": {"another failure is announced", "# fails: conflict", result{"not found", failed}, `"conflict" is announced`},
		"Succeeded":  {"a failure is announced", "# fails: sorry", result{"sorry", nil}, "meant to fail"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := compare(test.text, test.got)
			if test.wrong == "" {
				assert.NoError(t, err, test.reason)
				return
			}
			assert.ErrorContains(t, err, test.wrong, test.reason)
		})
	}
}

func TestParsePage(t *testing.T) {
	t.Parallel()
	p, closed := parsePage("x.md", "# The `why` command, again\n\n<!-- not run: too slow -->\n```sh\n# no heading\n```\n\n```text\nb\n```\nend\n")
	assert.True(t, closed)
	assert.Equal(t, []block{
		{page: "x.md", language: "sh", text: "# no heading\n", line: 4, reason: "too slow"},
		{page: "x.md", language: "text", text: "b\n", line: 8},
	}, p.blocks)
	assert.Equal(t, map[string]bool{"the-why-command-again": true}, p.anchors())
	assert.NotContains(t, p.prose, "no heading")
	_, closed = parsePage("x.md", "```sh\n")
	assert.False(t, closed, "the end of the block is missing")
}
