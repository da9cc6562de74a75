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

// block is a fenced part of a page.
type block struct {
	page, language, text string
	line                 int
	// reason says why the block is not run: <!-- not run: reason --> stands before it.
	reason string
}

var (
	fence   = regexp.MustCompile("^\\s*```(\\S*)\\s*$")
	notRun  = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	outside = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// pages reads README.md and all of docs/.
func pages(t *testing.T) []page {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
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
	content, err := os.ReadFile(filepath.Join(root(t), name))
	require.NoError(t, err)
	p, closed := parsePage(name, string(content))
	require.True(t, closed, "%s: a fenced block is not closed", name)
	return p
}

// parsePage also tells whether every fenced block is closed.
func parsePage(name, text string) (p page, closed bool) {
	p = page{name: name, text: text}
	var open *block
	var prose []string
	before := ""
	for n, line := range strings.Split(p.text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case match != nil && open == nil:
			open = &block{page: name, language: match[1], line: n + 1}
			if marker := notRun.FindStringSubmatch(before); marker != nil {
				open.reason = marker[1]
			}
		case match != nil:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			prose = append(prose, line)
		}
		if strings.TrimSpace(line) != "" {
			before = strings.TrimSpace(line)
		}
	}
	p.prose = strings.Join(prose, "\n")
	return p, open == nil
}

// anchors are those that GitHub gives the headings of a page.
func (p page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(p.prose, -1) {
		text := outside.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		found[strings.ReplaceAll(text, " ", "-")] = true
	}
	return found
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := toolchain.Root()
	require.NoError(t, err)
	return dir
}
