package repository

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// smallProject is a project with the Makefile of this one, whose program only prints its version: it is built in no time.
func smallProject(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	writeAll(t, dir, map[string]string{
		"Makefile": read(t, "Makefile"),
		"go.mod":   "module example.org/small\n\ngo 1.26.0\n",
		"main.go":  "package main\n\nvar version string\n\nfunc main() { print(version) }\n",
	})
	writeAll(t, dir, files)
	return dir
}

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// runMake runs make in a directory, with these variables in its environment, and returns all that it prints.
func runMake(t *testing.T, dir string, environment []string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"-C", dir}, args...)...)
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// A killed go build can leave the beginning of an executable, which has the build ID of a complete one.
func TestMakeReplacesAnIncompleteExecutable(t *testing.T) {
	t.Parallel()
	dir := smallProject(t, nil)
	for target, program := range map[string]string{
		"build":                         "bin/pod-reloader",
		"dist/pod-reloader-linux-amd64": "dist/pod-reloader-linux-amd64",
		filepath.Join(dir, "bin/e2e/pod-reloader"): "bin/e2e/pod-reloader",
	} {
		output, err := runMake(t, dir, nil, target, "VERSION=v1.2.3")
		require.NoError(t, err, output)
		path := filepath.Join(dir, program)
		complete, err := os.ReadFile(path)
		require.NoError(t, err)
		beside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
		assert.NoFileExists(t, beside)
		for _, incomplete := range []string{path, beside} {
			require.NoError(t, os.WriteFile(incomplete, complete[:len(complete)/2], 0o755))
		}
		output, err = runMake(t, dir, nil, target, "VERSION=v1.2.3")
		require.NoError(t, err, output)
		again, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(complete, again), target)
	}
}

// Each of these settings changes the bytes of a program, or ends its build.
func TestReleaseDoesNotDependOnSettingsOfGo(t *testing.T) {
	t.Parallel()
	dir := smallProject(t, map[string]string{
		"env/flags": "GOFLAGS=-tags=other\n", "env/experiment": "GOEXPERIMENT=jsonv2\n", "elsewhere/go.work": "go 1.26.0\n",
	})
	program := filepath.Join("dist", "pod-reloader-linux-amd64")
	build := func(environment ...string) (content []byte, output string, err error) {
		output, err = runMake(t, dir, environment, program, "VERSION=v1.2.3")
		content, readErr := os.ReadFile(filepath.Join(dir, program))
		require.NoError(t, readErr)
		return content, output, err
	}
	want, output, err := build()
	require.NoError(t, err, output)
	for _, setting := range []string{
		"GOFIPS140=latest", "GOEXPERIMENT=jsonv2", "GOFLAGS=-tags=other", "GOAMD64=v2",
		"GOENV=" + filepath.Join(dir, "env/flags"), "GOWORK=" + filepath.Join(dir, "elsewhere/go.work"),
	} {
		got, output, err := build(setting)
		require.NoError(t, err, "%s: %s", setting, output)
		assert.True(t, bytes.Equal(want, got), setting)
	}
	_, output, err = build("GOENV=" + filepath.Join(dir, "env/experiment"))
	require.Error(t, err, "no value of the variable stands for the default")
	assert.Contains(t, output, "run go env -u GOEXPERIMENT")
}

func TestReleaseCheckComparesTheCommitWithTheVersion(t *testing.T) {
	t.Parallel()
	const released = "# Changelog\n\n## 1.2.3 - 2026-11-30\n\n### Added\n\n## 1.2.2 - 2026-11-01\n"
	tests := map[string]struct {
		reason, version, changelog, uncommitted, problem string
	}{
		"release":         {reason: "all agree", version: "v1.2.3", changelog: released},
		"chart":           {"the chart and the manifests install another image", "v1.2.4", released, "", "VERSION=v1.2.4, but chart/pod-reloader/Chart.yaml has the version 1.2.3"},
		"part of version": {"a point is no pattern", "v1.2.30", released, "", "has the version 1.2.3"},
		"changelog":       {"the notes of the release are the changelog", "v1.2.3", "## Unreleased\n\n" + released, "", `CHANGELOG.md begins with "## Unreleased"`},
		"no date":         {"the changelog has the date", "v1.2.3", "## 1.2.3\n", "", `want "## 1.2.3 - " and the date`},
		"uncommitted":     {"the label of the image names the commit", "v1.2.3", released, "other.go", "?? other.go"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := smallProject(t, map[string]string{
				"chart/pod-reloader/Chart.yaml": "apiVersion: v2\nversion: 1.2.3\nappVersion: 1.2.3\n", "CHANGELOG.md": test.changelog,
			})
			for _, args := range [][]string{
				{"init", "--quiet"},
				{"add", "."},
				{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=Release"},
			} {
				output, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
				require.NoError(t, err, string(output))
			}
			if test.uncommitted != "" {
				writeAll(t, dir, map[string]string{test.uncommitted: "package main\n"})
			}
			output, err := runMake(t, dir, nil, "release-check", "VERSION="+test.version)
			if test.problem == "" {
				require.NoError(t, err, output)
				return
			}
			require.Error(t, err, test.reason)
			assert.Contains(t, output, test.problem, test.reason)
		})
	}
}

// The variable that names the program is set for all packages, so that whichever starts the program needs it built.
func TestMakeBuildsTheProgramForSuitesThatRunApart(t *testing.T) {
	t.Parallel()
	output, err := runMake(t, toolchain.RootOf(t), nil, "--dry-run", "test", "PKG=./e2e/simulate/check")
	require.NoError(t, err, output)
	assert.Contains(t, output, " "+filepath.Join(toolchain.RootOf(t), "bin", "e2e", "pod-reloader")+"\n")
	assert.Contains(t, output, "e2e/cmd/tools build")
}

// make 3.81, which macOS has, would report success of a recipe whose first command fails.
func TestOldMakeIsRefused(t *testing.T) {
	t.Parallel()
	output, err := runMake(t, smallProject(t, nil), nil, "help", ".FEATURES=order-only second-expansion")
	require.Error(t, err)
	assert.Contains(t, output, "GNU make 3.82 or newer is needed")
}

// A test that is skipped under the race detector would otherwise not run at all.
func TestWhatTheRaceDetectorLeavesOutIsRunWithoutIt(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`(?m)^THINNED := (.*)$`).FindStringSubmatch(read(t, "Makefile"))
	require.NotNil(t, line)
	thinned, err := regexp.Compile(strings.ReplaceAll(line[1], "$$", "$"))
	require.NoError(t, err)
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "./...")
	list.Dir = toolchain.RootOf(t)
	output, err := list.Output()
	require.NoError(t, err)
	for imports := range strings.Lines(string(output)) {
		words := strings.Fields(imports)
		skips := slices.ContainsFunc(words[1:], func(word string) bool { return strings.HasSuffix(word, "/pkg/unraced") })
		assert.Equal(t, skips, thinned.MatchString(words[0]), "%s: that it uses pkg/unraced, and that THINNED of the Makefile names it", words[0])
	}
}
