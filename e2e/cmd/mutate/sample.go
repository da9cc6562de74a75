package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sample is a choice among the mutants of a package. Gremlins can restrict itself to lines: those that differ from a commit.
type sample struct {
	// size is the least number of mutants; all mutants of a line are chosen together.
	size int
	seed uint64
}

// choose returns the lines to mutate, by file: the same ones for the same seed and code.
func (s sample) choose(all []mutant) map[string][]int {
	type line struct {
		file   string
		number int
	}
	mutants := make(map[line]int)
	var lines []line
	for _, m := range all {
		if m.Status != runnable && m.Status != notCovered {
			continue
		}
		at := line{m.File, m.Line}
		if mutants[at] == 0 {
			lines = append(lines, at)
		}
		mutants[at]++
	}
	slices.SortFunc(lines, func(a, b line) int {
		return 2*strings.Compare(a.file, b.file) + max(-1, min(1, a.number-b.number))
	})
	random := rand.New(rand.NewPCG(s.seed, s.seed))
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	chosen := make(map[string][]int)
	for n := 0; len(lines) > 0 && n < s.size; lines = lines[1:] {
		chosen[lines[0].file] = append(chosen[lines[0].file], lines[0].number)
		n += mutants[lines[0]]
	}
	return chosen
}

// commitOthers makes the directory a repository whose commit differs from the files in the lines alone. Their diff has no context:
// gremlins takes as many lines of a hunk as differ, from the first one on.
func commitOthers(ctx context.Context, dir string, lines map[string][]int) error {
	originals := make(map[string][]byte, len(lines))
	for file, numbers := range lines {
		path := filepath.Join(dir, file)
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		originals[path] = code
		if err := os.WriteFile(path, edit(code, numbers), 0o600); err != nil {
			return err
		}
	}
	const script = `rm -rf .git; git init -q; git config diff.context 0; git add .; git -c user.name=mutate -c user.email=mutate@localhost commit -q -m sample`
	cmd := exec.CommandContext(ctx, "bash", "-euc", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("commit the sample: %w: %s", err, out)
	}
	for path, code := range originals {
		if err := os.WriteFile(path, code, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// edit returns the code with a space at the end of each of the lines, counted from 1.
func edit(code []byte, lines []int) []byte {
	all := strings.Split(string(code), "\n")
	for _, n := range lines {
		all[n-1] += " "
	}
	return []byte(strings.Join(all, "\n"))
}
