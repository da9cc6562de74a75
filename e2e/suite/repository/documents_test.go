package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

var (
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):(.*)$`)
	makeCommand  = regexp.MustCompile("(?m)(?:`|^(?:\\$ |step )?)make ([a-z][a-z-]*)")
	packageRow   = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| (?:pure|shell|library|library, pure|composition|tests) \\|")
	sequenceRow  = regexp.MustCompile(`(?m)^\| (\d[\d, ]*) \|`)
	sequenceTest = regexp.MustCompile(`func (TestSequence(\d\d)\w+)\(`)
	link         = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)\s]*)?\)`)
)

// `make` prints every target, so every target says what it is for.
func TestMakeTargetsAreDocumented(t *testing.T) {
	t.Parallel()
	for target, description := range targets(t) {
		assert.Contains(t, description, "## ", "make %s", target)
	}
}

func TestDocumentsNameExistingMakeTargets(t *testing.T) {
	t.Parallel()
	existing := targets(t)
	for _, document := range append(documents(t), ".ci/run") {
		for _, match := range makeCommand.FindAllStringSubmatch(read(t, document), -1) {
			assert.Contains(t, existing, match[1], "%s says make %s", document, match[1])
		}
	}
}

func TestDocumentsLinkToExistingFiles(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			assert.FileExistsf(t, filepath.Join(toolchain.RootOf(t), filepath.Dir(document), match[1]),
				"%s links to %s", document, match[1])
		}
	}
}

// The design says of each package what it is for.
func TestDesignListsEveryPackage(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, match := range packageRow.FindAllStringSubmatch(read(t, "docs/design.md"), -1) {
		listed[match[1]] = true
	}
	existing := map[string]bool{}
	for _, file := range trackedFiles(t) {
		folder := filepath.Dir(file)
		if filepath.Ext(file) == ".go" && (strings.HasPrefix(folder, "pkg/") || folder == "webhook") && !strings.Contains(folder, "/internal/") {
			existing[strings.TrimPrefix(folder, "pkg/")] = true
		}
	}
	assert.Equal(t, existing, listed)
}

// The numbers of the sequences of events are those in the names of the tests of package stamp.
func TestDesignHasEverySequence(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	_, section, _ := strings.Cut(read(t, "docs/design.md"), "\n## Sequences\n")
	for _, row := range sequenceRow.FindAllStringSubmatch(section, -1) {
		for number := range strings.SplitSeq(row[1], ", ") {
			described[fmt.Sprintf("%02s", number)] = true
		}
	}
	for _, file := range trackedFiles(t) {
		if ok, _ := filepath.Match("pkg/stamp/*_test.go", file); ok {
			for _, match := range sequenceTest.FindAllStringSubmatch(read(t, file), -1) {
				assert.True(t, described[match[2]], "docs/design.md has no row for %s", match[1])
			}
		}
	}
}

// targets of the Makefile with the rest of their line. Lines that only set a variable for a target are left out.
func targets(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, match := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if !strings.Contains(match[2], ":=") {
			found[match[1]] = match[2]
		}
	}
	require.Contains(t, found, "help")
	return found
}

func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, file := range trackedFiles(t) {
		if filepath.Ext(file) == ".md" {
			found = append(found, file)
		}
	}
	require.NotEmpty(t, found)
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(toolchain.RootOf(t), file))
	require.NoError(t, err)
	return string(text)
}
