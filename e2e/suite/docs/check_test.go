package docs_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The checks themselves: what is not true must not pass.
func TestCompare(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	prints := func(text string) expectation { return expectation{text: text} }
	fails := func(text string) expectation { return expectation{text: text, fails: true} }
	tests := map[string]struct {
		reason   string
		expected []expectation
		got      result
		wrong    string
	}{
		"Silent":     {"nothing is expected", nil, result{"anything", nil}, ""},
		"Failed":     {"no failure is expected", nil, result{"sorry", failed}, "sorry"},
		"Printed":    {"both texts, in this order", []expectation{prints("one"), prints("two")}, result{"one two", nil}, ""},
		"Unordered":  {"both texts, in another order", []expectation{prints("one"), prints("two")}, result{"two one", nil}, `"two" is expected`},
		"Missing":    {"another text", []expectation{prints("one")}, result{"two", nil}, `"one" is expected`},
		"MeantToo":   {"the failure is the expected one", []expectation{fails("sorry")}, result{"so sorry", failed}, ""},
		"MeantOther": {"another failure is expected", []expectation{fails("conflict")}, result{"not found", failed}, `"conflict" is expected`},
		"Succeeded":  {"a failure is expected", []expectation{fails("sorry")}, result{"sorry", nil}, "meant to fail"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := compare(test.expected, test.got)
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
	const section = "\n<!-- not run: too slow -->\n```sh\n# no heading\n```\n\n```text\nb\n```\nend\n"
	p, closed := parsePage("x.md", "# The `why` command, again\n"+section+"## Last\nx\n")
	assert.True(t, closed, "each block has its end")
	assert.Equal(t, []block{
		{page: "x.md", language: "sh", text: "# no heading\n", line: 4, reason: "too slow"},
		{page: "x.md", language: "text", text: "b\n", line: 8},
	}, p.blocks)
	assert.Equal(t, map[string]string{"": "", "the-why-command-again": section, "last": "x\n"}, p.sections())
	assert.NotContains(t, p.prose, "no heading")
	_, closed = parsePage("x.md", "```sh\n")
	assert.False(t, closed, "the end of the block is missing")
}

func TestParsePageReadsHiddenStepsAndExpectations(t *testing.T) {
	t.Parallel()
	p, closed := parsePage("x.md", "<!-- run: one -->\n```sh\ntwo\n```\n<!-- prints: 2 -->\n<!-- fails: too -->\n<!-- run\nthree\nfour\n-->\nend\n")
	assert.True(t, closed, "each block has its end")
	assert.Equal(t, []block{
		{page: "x.md", language: "sh", text: "one\n", line: 1},
		{page: "x.md", language: "sh", text: "two\n", line: 2, expected: []expectation{{text: "2"}, {text: "too", fails: true}}},
		{page: "x.md", language: "sh", text: "three\nfour\n", line: 7},
	}, p.blocks)
	assert.Equal(t, "end", strings.TrimSpace(p.prose), "the page does not show them")
	_, closed = parsePage("x.md", "<!-- run\nthree\n")
	assert.False(t, closed, "the end of the step is missing")
}

// A comment of another form would be a step that is never run, or an output that is never compared.
func TestPagesHaveNoMalformedComments(t *testing.T) {
	t.Parallel()
	known := []*regexp.Regexp{notRun, expected, hiddenLine, hiddenBegin}
	for _, p := range pages(t) {
		for line := range strings.SplitSeq(p.text, "\n") {
			line = strings.TrimSpace(line)
			is := func(form *regexp.Regexp) bool { return form.MatchString(line) }
			assert.True(t, !strings.HasPrefix(line, "<!--") || slices.ContainsFunc(known, is), "%s: %s", p.name, line)
		}
		for _, b := range p.blocks {
			assert.NotContains(t, b.text, "# prints:", "%s line %d: write <!-- prints: … --> after the block", p.name, b.line)
		}
	}
}
