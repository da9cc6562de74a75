package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// readme is the page at the root of the repository; the others are in docs/.
const readme = "README.md"

// page is one document.
type page struct {
	// name is the path from the root of the repository.
	name, text string
	blocks     []block
	// prose is the text without its fenced blocks.
	prose string
}

// block is a fenced part of a page, or a step that the page does not show.
type block struct {
	page, language, text string
	line                 int
	// reason says why the block is not run: <!-- not run: reason --> is before it.
	reason string
	// expected is what the comments after the block require of it.
	expected []expectation
}

// expectation is a required output of a block: <!-- prints: text --> or <!-- fails: text --> after it.
type expectation struct {
	text  string
	fails bool
}

var (
	fence    = regexp.MustCompile("^\\s*```(\\S*)\\s*$")
	notRun   = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	expected = regexp.MustCompile(`^<!-- (prints|fails): (.+) -->$`)
	// A step that only the test needs, on one line or on several.
	hiddenLine  = regexp.MustCompile(`^<!-- run: (.+) -->$`)
	hiddenBegin = regexp.MustCompile(`^<!-- run$`)
	hiddenEnd   = regexp.MustCompile(`^-->$`)
	heading     = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	outside     = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// pages reads README.md and all of docs/.
func pages(t *testing.T) []page {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(toolchain.RootOf(t), "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	all := []page{readPage(t, readme)}
	for _, name := range names {
		all = append(all, readPage(t, "docs/"+filepath.Base(name)))
	}
	return all
}

func readPage(t *testing.T, name string) page {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(toolchain.RootOf(t), name))
	require.NoError(t, err)
	p, closed := parsePage(name, string(content))
	require.True(t, closed, "%s: a fenced block is not closed", name)
	return p
}

// parsePage reads a page, and returns false if a fenced block or a hidden step has no end.
func parsePage(name, text string) (p page, closed bool) {
	p = page{name: name, text: text}
	var open *block
	end := fence
	var prose []string
	before := ""
	for n, line := range strings.Split(p.text, "\n") {
		trimmed := strings.TrimSpace(line)
		match := fence.FindStringSubmatch(line)
		switch {
		case open != nil && end.MatchString(trimmed):
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case match != nil:
			open, end = &block{page: name, language: match[1], line: n + 1}, fence
			if marker := notRun.FindStringSubmatch(before); marker != nil {
				open.reason = marker[1]
			}
		case hiddenBegin.MatchString(trimmed):
			open, end = &block{page: name, language: "sh", line: n + 1}, hiddenEnd
		case !p.readComment(trimmed, n+1):
			prose = append(prose, line)
		}
		if trimmed != "" {
			before = trimmed
		}
	}
	p.prose = strings.Join(prose, "\n")
	return p, open == nil
}

// readComment takes a comment that is a step of its own, or that requires something of the block before it.
func (p *page) readComment(line string, n int) bool {
	if match := hiddenLine.FindStringSubmatch(line); match != nil {
		p.blocks = append(p.blocks, block{page: p.name, language: "sh", text: match[1] + "\n", line: n})
		return true
	}
	match := expected.FindStringSubmatch(line)
	if match == nil || len(p.blocks) == 0 {
		return false
	}
	last := &p.blocks[len(p.blocks)-1]
	last.expected = append(last.expected, expectation{text: match[2], fails: match[1] == "fails"})
	return true
}

// anchor returns the anchor that GitHub gives a heading.
func anchor(heading string) string {
	text := outside.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	return strings.ReplaceAll(text, " ", "-")
}

// sections are the texts of the headings of a page, each up to the next one, by their anchors.
func (p page) sections() map[string]string {
	found := map[string]string{}
	current, rest := "", p.text
	for _, match := range heading.FindAllStringSubmatch(p.prose, -1) {
		before, after, _ := strings.Cut(rest, match[0]+"\n")
		found[current] = before
		current, rest = anchor(match[1]), after
	}
	found[current] = rest
	return found
}
