package main

import (
	"fmt"
	"os"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// least is the share of the mutants that the tests of a package must notice, in percent.
const least = 90

// survivor is an accepted mutant: no test can notice it, or none should.
type survivor struct {
	// Package, File and Type say what was changed, Code is the line, so that it is found again when lines move.
	Package string `json:"package"`
	File    string `json:"file"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	// Why it is accepted.
	Why string `json:"why"`
}

func readSurvivors(path string) ([]survivor, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []survivor
	if err := yaml.UnmarshalStrict(body, &list); err != nil {
		return nil, fmt.Errorf("decode %s: %w", path, err)
	}
	for _, s := range list {
		if s.Why == "" {
			return nil, fmt.Errorf("%s: %s/%s: %s has no reason", path, s.Package, s.File, s.Code)
		}
	}
	return list, nil
}

// result is what was found in one package.
type result struct {
	dir                     string
	killed, lived, accepted int
	// timedOut are those of killed whose tests did not end in time.
	timedOut int
	// unknown are the survivors that are not accepted.
	unknown []mutant
	// dry says that the killed mutants are those that the tests reach.
	dry bool
}

func judge(dir string, found []mutant, list []survivor) result {
	r := result{dir: dir}
	for _, m := range found {
		switch m.Status {
		case killed:
			r.killed++
		case timedOut:
			r.killed++
			r.timedOut++
		case runnable:
			r.killed++
			r.dry = true
		case lived, notCovered:
			r.lived++
			if isAccepted(dir, m, list) {
				r.accepted++
			} else {
				r.unknown = append(r.unknown, m)
			}
		}
	}
	return r
}

func isAccepted(dir string, m mutant, list []survivor) bool {
	for _, s := range list {
		if path.Join(s.Package, s.File) == path.Join(dir, m.File) && s.Type == m.Type && s.Code == m.Code {
			return true
		}
	}
	return false
}

// efficacy is the share of the mutants that tests notice, in percent.
func (r result) efficacy() float64 {
	if r.killed+r.lived == 0 {
		return 100
	}
	return 100 * float64(r.killed) / float64(r.killed+r.lived)
}

func (r result) String() string {
	var b strings.Builder
	what := "noticed"
	if r.dry {
		what = "reached"
	}
	fmt.Fprintf(&b, "%-16s %5.1f %%: %d of %d mutants are %s, %d of them by a timeout, %d survivors are accepted\n",
		r.dir, r.efficacy(), r.killed, r.killed+r.lived, what, r.timedOut, r.accepted)
	for _, m := range r.unknown {
		how := "survives"
		if m.Status == notCovered {
			how = "is not reached"
		}
		fmt.Fprintf(&b, "  %s/%s:%d: %s %s: %s\n", r.dir, m.File, m.Line, m.Type, how, m.Code)
	}
	return b.String()
}

func (r result) err() error {
	switch {
	case r.efficacy() < least:
		return fmt.Errorf("the tests of %s notice %.1f %% of the mutants, %d %% are required: add tests", r.dir, r.efficacy(), least)
	case len(r.unknown) > 0:
		return fmt.Errorf("%d mutants of %s survive: add tests, or accept them with a reason in survivors.yaml", len(r.unknown), r.dir)
	default:
		return nil
	}
}
