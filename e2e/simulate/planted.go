package simulate

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Planted is a fault that can be planted into the program: a piece of its source is replaced.
type Planted struct {
	Name string `json:"name"`
	// File is its path in the repository.
	File string `json:"file"`
	// Old occurs exactly once in the file; New takes its place.
	Old string `json:"old"`
	New string `json:"new"`
	// Law begins the signature of what must be found, in whole words, such as "jobs/run"; empty for any.
	Law string `json:"law,omitempty"`
	// Flags start the program of all histories with these instead of drawn ones.
	Flags []string `json:"flags,omitempty"`
	// Graph hunts with histories that all have custom resources.
	Graph bool `json:"graph,omitempty"`
	// Restarts hunts with histories that all have a Rollout which is restarted without a new template.
	Restarts bool `json:"restarts,omitempty"`
	// Theme hunts with histories that all have acts of this theme.
	Theme string `json:"theme,omitempty"`
	// Situation ends all histories with this one, where others hardly ever find the fault.
	Situation string `json:"situation,omitempty"`
}

// ReadPlanted reads the list of faults.
func ReadPlanted() ([]Planted, error) {
	name, content, err := readFile("e2e/simulate/testdata/planted.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the faults to plant: %w", err)
	}
	var faults []Planted
	if err := yaml.UnmarshalStrict(content, &faults); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return faults, nil
}

// Is reports whether a signature is one that the fault must lead to.
func (p Planted) Is(signature string) bool {
	return p.Law == "" || strings.HasPrefix(signature+"/", p.Law+"/")
}

// Apply returns the file's path and its content with the fault.
func (p Planted) Apply() (path string, content []byte, err error) {
	path, content, err = readFile(p.File)
	if err != nil {
		return "", nil, fmt.Errorf("plant %s: %w", p.Name, err)
	}
	if n := bytes.Count(content, []byte(p.Old)); n != 1 || p.Old == p.New {
		return "", nil, fmt.Errorf("plant %s: %q occurs %d times in %s, want once: adapt testdata/planted.yaml to the code", p.Name, p.Old, n, p.File)
	}
	return path, bytes.Replace(content, []byte(p.Old), []byte(p.New), 1), nil
}
