package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
)

// Known lists what is known to be broken: the signatures of violations, each with the defect behind it. A hunt counts them
// and looks for others. The list is to be empty.
type Known []KnownDefect

// KnownDefect is one of them.
type KnownDefect struct {
	// Signature of violations; one "*" in it stands for any text.
	Signature string `json:"signature"`
	// Why says what is wrong with the program.
	Why string `json:"why"`
}

// ReadKnown reads the list.
func ReadKnown() (Known, error) {
	name, content, err := readFile("e2e/simulate/testdata/known.yaml")
	if err != nil {
		return nil, fmt.Errorf("read what is known to be broken: %w", err)
	}
	var known Known
	if err := yaml.UnmarshalStrict(content, &known); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return known, nil
}

// readFile returns the full name and the content of a file of the repository.
func readFile(path string) (name string, content []byte, err error) {
	root, err := toolchain.Root()
	if err != nil {
		return "", nil, err
	}
	name = filepath.Join(root, filepath.FromSlash(path))
	content, err = os.ReadFile(name)
	return name, content, err
}

// Has reports whether a violation is known.
func (k Known) Has(v oracle.Violation) bool {
	for _, d := range k {
		if d.fits(v.Signature) {
			return true
		}
	}
	return false
}

// Concerns reports whether the law for which a history is kept is known to be broken. A file that has the name of the law alone
// is concerned where all of that law is.
func (k Known) Concerns(h history.History) bool {
	return k.Has(oracle.Violation{Signature: h.Law}) || k.Has(oracle.Violation{Signature: h.Law + "/"})
}

// fits compares a signature with the pattern.
func (d KnownDefect) fits(signature string) bool {
	first, rest, wild := strings.Cut(d.Signature, "*")
	return signature == d.Signature ||
		wild && len(signature) >= len(first)+len(rest) && strings.HasPrefix(signature, first) && strings.HasSuffix(signature, rest)
}

// Unknown returns the violations that are not known.
func (k Known) Unknown(violations []oracle.Violation) []oracle.Violation {
	var unknown []oracle.Violation
	for _, v := range violations {
		if !k.Has(v) {
			unknown = append(unknown, v)
		}
	}
	return unknown
}
