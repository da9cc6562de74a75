package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
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
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// commandLink is a link whose text is a command of the program.
	commandLink = regexp.MustCompile("\\[`(pod-reloader [a-z]+)`\\]\\(([^)\\s#]*)#([^)\\s]+)\\)")
	testRun     = regexp.MustCompile("`go test (\\./\\S+) -run (\\S+)`")
)

func TestLinkTargetsExist(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(p.prose, -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(match[1], "#")
			target := p.linked(file)
			if _, err := os.Stat(filepath.Join(toolchain.RootOf(t), target)); !assert.NoError(t, err, "%s links to %s", p.name, match[1]) {
				continue
			}
			if heading != "" {
				_, found := readPage(t, target).sections()[heading]
				assert.True(t, found, "%s links to %s: there is no such heading", p.name, match[1])
			}
		}
	}
}

// linked returns the name of the page that a link names; the page itself if the link names none.
func (p page) linked(file string) string {
	if file == "" {
		return p.name
	}
	return filepath.Join(filepath.Dir(p.name), file)
}

func TestLinkOfCommandLeadsToSectionWithCommand(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range pages(t) {
		for _, match := range commandLink.FindAllStringSubmatch(p.prose, -1) {
			checked++
			section := readPage(t, p.linked(match[2])).sections()[match[3]]
			if !strings.Contains(section, match[1]) {
				t.Errorf("%s: the section of %s does not have the command", p.name, match[0])
			}
		}
	}
	require.NotZero(t, checked)
}

func TestEveryPageIsLinkedFromTheReadme(t *testing.T) {
	t.Parallel()
	start := readPage(t, readme)
	for _, p := range pages(t) {
		if p.name != readme {
			assert.Contains(t, start.prose, "]("+p.name+")")
		}
	}
}

// docs/README.md is for readers who open the folder: it has the table of the README, with links that begin there.
func TestIndexOfPagesIsThatOfTheReadme(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(readPage(t, readme).text, "\n## Documentation\n")
	require.True(t, found, "%s has no section Documentation", readme)
	rows := regexp.MustCompile(`(?m)^\|.*$`).FindAllString(section, -1)
	require.NotEmpty(t, rows)
	table := link.ReplaceAllStringFunc(strings.Join(rows, "\n"), func(target string) string {
		target = strings.TrimPrefix(target, "](")
		if inside, ok := strings.CutPrefix(target, "docs/"); ok {
			return "](" + inside
		}
		return "](../" + target
	})
	assert.Contains(t, readPage(t, "docs/README.md").text, "\n\n"+table+"\n")
}

// The README names, for every promise, the command that proves it.
func TestPromisesAreProvedByTests(t *testing.T) {
	t.Parallel()
	p := readPage(t, readme)
	for _, promise := range []string{"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"} {
		assert.Regexp(t, `(?m)^\| `+promise+" \\|.*`go test ", p.prose, "the README proves %s", promise)
	}
}

// A page that names a test must name one that exists.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range pages(t) {
		for _, command := range testRun.FindAllStringSubmatch(p.prose, -1) {
			checked++
			pattern, err := regexp.Compile(command[2])
			require.NoError(t, err)
			assert.True(t, matchesAny(pattern, testsIn(t, command[1])), "%s: %s runs no test", p.name, command[0])
		}
	}
	require.NotZero(t, checked)
}

func matchesAny(pattern *regexp.Regexp, names []string) bool {
	for _, name := range names {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}

// testsIn are the names of the tests of a package.
func testsIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(toolchain.RootOf(t), dir, "*_test.go"))
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		for _, declaration := range parse(t, file).Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && strings.HasPrefix(function.Name.Name, "Test") {
				names = append(names, function.Name.Name)
			}
		}
	}
	return names
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return parsed
}
