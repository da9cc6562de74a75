package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const report = `{"files": [{"file_name": "gates.go", "mutations": [
  {"type": "CONDITIONALS_BOUNDARY", "status": "LIVED", "line": 2, "column": 7},
  {"type": "CONDITIONALS_NEGATION", "status": "KILLED", "line": 2, "column": 7},
  {"type": "INVERT_LOGICAL", "status": "NOT COVERED", "line": 3, "column": 1},
  {"type": "ARITHMETIC_BASE", "status": "TIMED OUT", "line": 3, "column": 1}
]}]}`

func mutants(t *testing.T, body string) []mutant {
	t.Helper()
	found, err := parse([]byte(body), func(file string) ([]byte, error) {
		require.Equal(t, "gates.go", file)
		return []byte("package reload\n\tif wait < 0 {\n}\n"), nil
	})
	require.NoError(t, err)
	return found
}

func TestSurvivorIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	r := judge("pkg/reload", mutants(t, report), nil)
	assert.Equal(t, 2, r.killed, "a test that does not end has noticed, too")
	assert.InDelta(t, 50, r.efficacy(), 0.1)
	assert.Contains(t, r.String(), "2 of 4 mutants are noticed, 1 of them by a timeout, 0 survivors are accepted")
	assert.Contains(t, r.String(), "pkg/reload/gates.go:2: CONDITIONALS_BOUNDARY survives: if wait < 0 {")
	assert.Contains(t, r.String(), "pkg/reload/gates.go:3: INVERT_LOGICAL is not reached: }")
	assert.ErrorContains(t, r.err(), "50.0 %")
}

func TestDryRunReportsWhatNoTestReaches(t *testing.T) {
	t.Parallel()
	r := judge("pkg/reload", []mutant{{Status: runnable}, {Status: runnable}, {File: "gates.go", Line: 7, Status: notCovered}}, nil)
	assert.Contains(t, r.String(), "2 of 3 mutants are reached, 0 of them by a timeout, 0 survivors are accepted")
	assert.Equal(t, []mutant{{File: "gates.go", Line: 7, Status: notCovered}}, r.unknown)
}

func TestAcceptedSurvivorIsFoundByItsCode(t *testing.T) {
	t.Parallel()
	accepted := survivor{Package: "pkg/reload", File: "gates.go", Type: "CONDITIONALS_BOUNDARY", Code: "if wait < 0 {", Why: "0 waits for nothing"}
	tests := map[string]struct {
		change func(*survivor)
		want   int
	}{
		"the same":           {func(*survivor) {}, 1},
		"mutated from above": {func(s *survivor) { s.Package, s.File = "pkg", "reload/gates.go" }, 1},
		"another package":    {func(s *survivor) { s.Package = "pkg/stamp" }, 0},
		"another file":       {func(s *survivor) { s.File = "loop.go" }, 0},
		"another mutation":   {func(s *survivor) { s.Type = "ARITHMETIC_BASE" }, 0},
		"the line is edited": {func(s *survivor) { s.Code = "if wait <= 1 {" }, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := accepted
			tc.change(&s)
			r := judge("pkg/reload", mutants(t, report), []survivor{s})
			assert.Equal(t, tc.want, r.accepted)
			assert.Len(t, r.unknown, 2-tc.want)
		})
	}
}

func TestUnacceptedSurvivorFailsAboveTheShare(t *testing.T) {
	t.Parallel()
	assert.ErrorContains(t, result{dir: "pkg/stamp", killed: 99, lived: 1, unknown: []mutant{{}}}.err(), "1 mutants of pkg/stamp survive")
	assert.NoError(t, result{dir: "pkg/stamp", killed: 99, lived: 1, accepted: 1}.err())
	assert.NoError(t, result{dir: "pkg/stamp"}.err(), "nothing to mutate")
}

func TestReportOfAnotherFormIsAnError(t *testing.T) {
	t.Parallel()
	_, err := parse([]byte("{"), nil)
	require.ErrorContains(t, err, "decode the report")
	_, err = parse([]byte(`{"files": [{"file_name": "gates.go", "mutations": [{"line": 99}]}]}`), func(string) ([]byte, error) { return nil, nil })
	require.ErrorContains(t, err, "no line 99")
}

// An entry whose line is not there any more accepts nothing, and only misleads.
func TestAcceptedSurvivorsAreLinesOfTheCode(t *testing.T) {
	t.Parallel()
	list, err := readSurvivors("survivors.yaml")
	require.NoError(t, err)
	for _, s := range list {
		code, err := os.ReadFile(filepath.Join("..", "..", "..", s.Package, s.File))
		require.NoError(t, err)
		lines := strings.Split(string(code), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		assert.True(t, slices.Contains(lines, s.Code), "%s/%s has no line %q: remove the entry, or adapt it", s.Package, s.File, s.Code)
	}
}

func TestSurvivorWithoutReasonIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "survivors.yaml")
	require.NoError(t, os.WriteFile(path, []byte("[{package: pkg/stamp, file: patch.go, type: ARITHMETIC_BASE, code: x}]"), 0o600))
	_, err := readSurvivors(path)
	require.ErrorContains(t, err, "has no reason")
}

func TestSampleIsChosenBySeed(t *testing.T) {
	t.Parallel()
	all := []mutant{
		{File: "a.go", Line: 1, Status: runnable},
		{File: "a.go", Line: 1, Status: runnable},
		{File: "a.go", Line: 2, Status: notCovered},
		{File: "a.go", Line: 3, Status: "SKIPPED"},
		{File: "b.go", Line: 1, Status: runnable},
	}
	for seed := range uint64(50) {
		chosen := sample{size: 2, seed: seed}.choose(all)
		n := len(chosen["a.go"]) + len(chosen["b.go"])
		if slices.Contains(chosen["a.go"], 1) { // it holds two mutants
			n++
		}
		assert.GreaterOrEqual(t, n, 2)
		assert.LessOrEqual(t, n, 3)
		assert.NotContains(t, chosen["a.go"], 3, "it is not judged")
		assert.Equal(t, chosen, sample{size: 2, seed: seed}.choose(reversed(all)), "the report has no fixed order")
	}
	assert.Equal(t, 3, len(sample{size: 9}.choose(all)["a.go"])+len(sample{size: 9}.choose(all)["b.go"]), "every line with a mutant that is judged")
	assert.Empty(t, sample{size: 9}.choose(nil))
}

func reversed(all []mutant) []mutant {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}

func TestPackagesAreNamedAsForTheGoCommand(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"pkg/stamp", "pkg/stamp/", "./pkg/stamp", "./pkg/stamp/..."} {
		assert.Equal(t, []string{"pkg/stamp"}, directories([]string{p}), "accepted survivors of %s are not found", p)
	}
	assert.Empty(t, directories(nil))
}

func TestCoreIsADirectoryEachAndNoneTwice(t *testing.T) {
	t.Parallel()
	for i, dir := range core {
		assert.DirExists(t, filepath.Join("..", "..", "..", dir))
		for j, other := range core {
			assert.False(t, i != j && strings.HasPrefix(other+"/", dir+"/"), "%s is mutated with %s, too", other, dir)
		}
	}
}

// The packages that decide are those of the linter's rule pure.
func TestCoreHasEachPurePackage(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile(filepath.Join("..", "..", "..", ".golangci.yaml"))
	require.NoError(t, err)
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files []string }
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(body, &config))
	var pure []string
	for _, files := range config.Linters.Settings.Depguard.Rules["pure"].Files {
		if dir, ok := strings.CutPrefix(files, "**/"); ok {
			pure = append(pure, path.Dir(dir))
		}
	}
	require.Contains(t, pure, "pkg/stamp")
	require.Contains(t, pure, "pkg/certs")
	assert.Subset(t, core, pure)
}

// What gremlins is asked to mutate is what git calls changed.
func TestCommitDiffersInTheChosenLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.go")
	code := "package a\n\nvar x = 1 + 1\nvar y = 2 + 2\n"
	require.NoError(t, os.WriteFile(path, []byte(code), 0o600))
	for _, line := range []string{"3", "4"} {
		number, err := strconv.Atoi(line)
		require.NoError(t, err)
		require.NoError(t, commitOthers(t.Context(), dir, map[string][]int{"a.go": {number}}))
		cmd := exec.CommandContext(t.Context(), "git", "diff", "--unified=0", "HEAD")
		cmd.Dir = dir
		out, err := cmd.Output()
		require.NoError(t, err)
		assert.Contains(t, string(out), "\n@@ -"+line+" +"+line+" @@")
		assert.Equal(t, 1, strings.Count(string(out), "\n@@"))
		stored, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, code, string(stored))
	}
}

func TestCommitDiffersInAHunkForEachLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("1\n2\n3\n4\n5\n6\n"), 0o600))
	require.NoError(t, commitOthers(t.Context(), dir, map[string][]int{"a.go": {5, 2}}))
	cmd := exec.CommandContext(t.Context(), "git", "diff", "--merge-base", "HEAD")
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(out), "\n@@"), "gremlins takes the first lines of a hunk: %s", out)
	assert.NotContains(t, string(out), "\n 4", "context")
}
