package docs_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// Each kind of thing that an operator may meet has a page that names all of it.
const (
	eventsPage     = "docs/events.md"
	flagsPage      = "docs/flags.md"
	howItWorksPage = "docs/how-it-works.md"
	monitoringPage = "docs/monitoring.md"
	warningsPage   = "docs/warnings.md"
)

var (
	flagName    = regexp.MustCompile("`--([a-z][A-Za-z0-9-]+)")
	flagRow     = regexp.MustCompile("(?m)^\\| (`--[^|]+) \\| ([^|]*)\\|")
	metricName  = regexp.MustCompile(`pod_reloader_[a-z_]+[a-z]`)
	metricTable = regexp.MustCompile("(?m)^\\| `(pod_reloader_[a-z_]+)` \\| (?:counter|gauge|histogram)")
	eventTable  = regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\| (?:Normal|Warning) \\|")
	firstCell   = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	verb        = regexp.MustCompile(`%[a-z]`)
)

// firstCells is the text of the first column of the tables of a page.
func firstCells(t *testing.T, name string) string {
	t.Helper()
	var cells []string
	for _, match := range firstCell.FindAllStringSubmatch(readPage(t, name).prose, -1) {
		cells = append(cells, match[1])
	}
	require.NotEmpty(t, cells, name)
	return strings.Join(cells, "\n")
}

func TestEveryFlagIsDocumented(t *testing.T) {
	t.Parallel()
	documented := firstCells(t, flagsPage)
	options.NewFlags().All().VisitAll(func(f *pflag.Flag) {
		assert.Contains(t, documented, "`--"+f.Name+"`", "%s has no row for the flag --%s", flagsPage, f.Name)
	})
}

// A flag whose default is empty has an empty cell, or one that says on what its default depends.
func TestDefaultsOfFlagsAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	defaults := map[string]string{}
	for _, row := range flagRow.FindAllStringSubmatch(readPage(t, flagsPage).prose, -1) {
		for _, name := range flagName.FindAllStringSubmatch(row[1], -1) {
			defaults[name[1]] = strings.TrimSpace(row[2])
		}
	}
	options.NewFlags().All().VisitAll(func(f *pflag.Flag) {
		cell := defaults[f.Name]
		if f.DefValue == "" || f.DefValue == "[]" {
			assert.NotRegexp(t, "^`[^`]*`$", cell, "--%s has no default", f.Name)
			return
		}
		documented := strings.TrimPrefix(regexp.MustCompile("^`[^`]*").FindString(cell), "`")
		if d, err := time.ParseDuration(documented); err == nil && f.Value.Type() == "duration" {
			documented = d.String()
		}
		elsewhere := cell == "Reloader's" || f.Name == "zap-devel"
		assert.True(t, elsewhere || documented == f.DefValue, "%s has the default %s for --%s, which is %s", flagsPage, cell, f.Name, f.DefValue)
	})
}

// Flags of the program and of its sub-commands, and those of other programs that the pages name.
func TestNoOtherFlagIsDocumented(t *testing.T) {
	t.Parallel()
	known := map[string]bool{
		"watch-progress-notify-interval": true, // of etcd
		"force-conflicts":                true, // of Helm 4 and kubectl
	}
	options.NewFlags().All().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	for _, command := range []string{"why", "clean", "plan", "graph", "roles", "check"} {
		help, err := exec.CommandContext(t.Context(), shared.Executable(), command, "--help").CombinedOutput()
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`--([A-Za-z-]+)`).FindAllStringSubmatch(string(help), -1) {
			known[match[1]] = true
		}
	}
	for _, p := range pages(t) {
		for _, match := range flagName.FindAllStringSubmatch(p.prose, -1) {
			assert.True(t, known[match[1]] || refused(match[1]), "%s names the flag --%s", p.name, match[1])
		}
	}
}

// refused reports whether the program knows a flag of Reloader and says what to write instead.
func refused(flag string) bool {
	err := options.NewFlags().Parse([]string{"--" + flag + "=x"})
	return err != nil && strings.Contains(err.Error(), "not supported: ")
}

// The names of environment variables in the help text are those of the page.
func TestEveryVariableIsDocumented(t *testing.T) {
	t.Parallel()
	documented := firstCells(t, flagsPage)
	for _, v := range options.Variables() {
		for name := range strings.SplitSeq(v.Name, ", ") {
			assert.Contains(t, documented, "`"+name+"`", "%s has no row for the variable %s", flagsPage, name)
		}
	}
}

func TestEveryMetricIsDocumentedAndNoOther(t *testing.T) {
	t.Parallel()
	exported := map[string]bool{}
	for _, sample := range scrape(t) {
		exported[sample] = true
	}
	for _, file := range program(t, "pkg", "webhook") {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if name, ok := literal(n); ok && metricName.FindString(name) == name && name != "" {
				exported[name] = true
			}
			if call, ok := n.(*ast.CallExpr); ok && called(call) == "counter" {
				if name, ok := literal(call.Args[0]); ok {
					exported["pod_reloader_"+name] = true
				}
			}
			return true
		})
	}
	require.Greater(t, len(exported), 10)
	documented := map[string]bool{}
	for _, p := range pages(t) {
		for _, name := range metricName.FindAllString(p.text, -1) {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if trimmed := strings.TrimSuffix(name, suffix); exported[trimmed] {
					name = trimmed
				}
			}
			assert.True(t, exported[name], "%s names the metric %s", p.name, name)
		}
		for _, match := range metricTable.FindAllStringSubmatch(p.prose, -1) {
			assert.Equal(t, monitoringPage, p.name, "the page with the row for %s", match[1])
			documented[match[1]] = true
		}
	}
	for name := range exported {
		assert.True(t, documented[name], "%s has no row for the metric %s", monitoringPage, name)
	}
}

// scrape returns the names of our metrics that the running replicas export.
func scrape(t *testing.T) []string {
	t.Helper()
	metrics, err := shared.Metrics(t.Context())
	require.NoError(t, err)
	names := map[string]bool{}
	for _, sample := range metrics {
		if strings.HasPrefix(sample.Name, "pod_reloader_") {
			names[strings.TrimSuffix(strings.TrimSuffix(sample.Name, "_sum"), "_count")] = true
		}
	}
	require.NotEmpty(t, names)
	return slices.Sorted(maps.Keys(names))
}

func TestEveryEventIsDocumentedAndNoOther(t *testing.T) {
	t.Parallel()
	reasons := eventReasons(t)
	require.Greater(t, len(reasons), 5)
	documented := map[string]bool{}
	for _, p := range pages(t) {
		for _, match := range eventTable.FindAllStringSubmatch(p.prose, -1) {
			assert.Equal(t, eventsPage, p.name, "the page with the row for %s", match[1])
			documented[match[1]] = true
			assert.True(t, reasons[match[1]], "no Event has the reason %s", match[1])
		}
	}
	for reason := range reasons {
		assert.True(t, documented[reason], "%s has no row for Events with the reason %s", eventsPage, reason)
	}
}

// eventReasons are the reasons that the loop, the configuration and the chain of custom resources give Events: constants called reason… or Event…, fields
// called reason, and the argument of the functions that send Events.
func eventReasons(t *testing.T) map[string]bool {
	t.Helper()
	reasons := map[string]bool{}
	take := func(n ast.Node) {
		if reason, ok := literal(n); ok {
			reasons[reason] = true
		}
	}
	position := map[string]int{"failedWrite": 1, "sendEvent": 2, "send": 2}
	for _, file := range program(t, "pkg", "webhook") {
		slash := filepath.ToSlash(file)
		if !slices.ContainsFunc([]string{"reload", "configuration", "watchhealth", "keyring", "chain"}, func(p string) bool { return strings.Contains(slash, "/pkg/"+p+"/") }) {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if name := n.Names[0].Name; (strings.HasPrefix(strings.ToLower(name), "reason") || strings.HasPrefix(name, "Event")) && len(n.Values) > 0 {
					take(n.Values[0])
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "reason" {
					take(n.Value)
				}
			case *ast.CallExpr:
				if argument, ok := position[called(n)]; ok && argument < len(n.Args) {
					take(n.Args[argument])
				}
			}
			return true
		})
	}
	return reasons
}

// A warning of the webhook begins with the name of the program.
func TestEveryWarningIsDocumented(t *testing.T) {
	t.Parallel()
	text := firstCells(t, warningsPage)
	count := 0
	for _, file := range program(t, "webhook", "pkg/stamp", "pkg/annotation") {
		for _, message := range messages(t, file) {
			count++
			for _, part := range verb.Split(message, -1) {
				if part = strings.Trim(part, " :;,"); len(part) > 12 && !strings.Contains(text, part) {
					t.Errorf("%s does not have %q, which %s says", warningsPage, part, file)
				}
			}
		}
	}
	require.Greater(t, count, 8)
}

// messages are the texts for users: those that begin with our name, those that are Problems or Rejections, what is given to a function called
// report, and constants whose name begins with "consequence".
func messages(t *testing.T, file string) []string {
	t.Helper()
	var found []string
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if text, ok := literal(firstOf(n.Args)); ok && called(n) == "report" {
				found = append(found, text)
			}
		case *ast.ValueSpec:
			if text, ok := literal(firstOf(n.Values)); ok && strings.HasPrefix(n.Names[0].Name, "consequence") {
				found = append(found, text)
			}
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			if ok && key.Name == "Message" {
				ast.Inspect(n.Value, func(inner ast.Node) bool {
					if text, ok := literal(inner); ok {
						found = append(found, text)
					}
					return true
				})
				return false
			}
		}
		if text, ok := literal(n); ok && strings.HasPrefix(text, "pod-reloader") && strings.Contains(text, " ") {
			found = append(found, text)
		}
		return true
	})
	return found
}

// firstOf is the first argument of a call, if there is one.
func firstOf(arguments []ast.Expr) ast.Node {
	if len(arguments) == 0 {
		return nil
	}
	return arguments[0]
}

// literal is the value of a text in the source.
func literal(n ast.Node) (string, bool) {
	basic, ok := n.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(basic.Value)
	return value, err == nil
}

// called is the name of the function or method that is called.
func called(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		return function.Sel.Name
	default:
		return ""
	}
}

// program are the source files of the program in some directories, without their tests.
func program(t *testing.T, dirs ...string) []string {
	t.Helper()
	var files []string
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(filepath.Join(toolchain.RootOf(t), dir), func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				files = append(files, path)
			}
			return err
		}))
	}
	require.NotEmpty(t, files)
	return files
}

// The values of labels that people filter by: rules of the webhook, outcomes of its decisions and of pokes.
func TestEveryRuleAndOutcomeIsDocumented(t *testing.T) {
	t.Parallel()
	constants := map[string]struct {
		page  string
		named *regexp.Regexp
	}{
		"pkg/stamp/rules.go": {howItWorksPage, regexp.MustCompile(`^Rule`)},
		"webhook/metrics.go": {monitoringPage, regexp.MustCompile(`^outcome`)},
		"pkg/poke/poke.go":   {monitoringPage, regexp.MustCompile(``)},
		// The causes of reloads, as last-reload and the metric have them.
		"pkg/record/lastreload.go": {monitoringPage, regexp.MustCompile(`^Cause`)},
	}
	for file, of := range constants {
		count := 0
		text := readPage(t, of.page).prose
		ast.Inspect(parse(t, filepath.Join(toolchain.RootOf(t), file)), func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 || !of.named.MatchString(spec.Names[0].Name) {
				return true
			}
			if value, ok := literal(spec.Values[0]); ok {
				count++
				if !strings.Contains(text, "`"+value+"`") {
					t.Errorf("%s does not have %s, which %s knows", of.page, value, file)
				}
			}
			return true
		})
		assert.GreaterOrEqual(t, count, 4, file)
	}
}
