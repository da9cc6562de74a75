package annotation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// SAP is the dialect of SAP's pod-reloader: two lists of names on the workload. Every Change of a listed object
// triggers, creation and deletion included.
type SAP struct {
	Keys Keys
}

var _ Dialect = SAP{}

// Parse reads the two lists. A name that cannot exist is a Problem, as is a list on the pod template or under a
// misspelt key when the workload does not have the right one.
func (s SAP) Parse(src Source) (Intent, []Problem) {
	l := lists{source: src}
	l.intent.ConfigMaps = l.read(reference.ConfigMap, s.Keys.ConfigMaps)
	l.intent.Secrets = l.read(reference.Secret, s.Keys.Secrets)
	l.intent.Asked = len(l.intent.ConfigMaps)+len(l.intent.Secrets) > 0
	return l.intent, l.problems
}

// lists is one reading of the two lists.
type lists struct {
	source   Source
	intent   Intent
	problems []Problem
}

// read takes one list in, and returns its items as written.
func (l *lists) read(kind reference.Kind, key string) []string {
	value, there := l.source.Workload[key]
	if !there {
		l.elsewhere(key)
		return nil
	}
	items := splitList(value)
	var wrong invalidNames
	seen := make(map[string]bool, len(items))
	for i, name := range items {
		if seen[name] {
			continue
		}
		seen[name] = true
		if err := reference.ValidName(name); err != nil {
			wrong.add(i+1, err)
			continue
		}
		l.intent.track(reference.Ref{Kind: kind, Name: name}, Trigger{OnCreate: true, OnDelete: true})
	}
	l.problems = append(l.problems, wrong.problems(key)...)
	return items
}

// elsewhere looks for a list that its author put where nothing reads it.
func (l *lists) elsewhere(key string) {
	if _, misplaced := l.source.Template[key]; misplaced {
		l.problems = append(l.problems, Problem{Message: fmt.Sprintf(
			"annotation %q on the pod template has no effect: put it into metadata.annotations of the workload", key)})
	}
	prefix, name, _ := strings.Cut(key, "/")
	for _, other := range slices.Sorted(maps.Keys(l.source.Workload)) {
		if misspelt, ours := strings.CutPrefix(other, prefix+"/"); ours && folded(misspelt) == folded(name) {
			l.problems = append(l.problems, Problem{Message: fmt.Sprintf(
				"annotation %q has no effect: it is called %q", other, key)})
		}
	}
}

// folded returns what the likely misspellings of a name have in common: config-maps, configMaps and configmap are one.
func folded(name string) string {
	return strings.TrimSuffix(strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(name)), "s")
}

// splitList returns the items of a comma-separated list, trimmed, without the empty ones.
func splitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// maxInvalid is how many impossible names of one list are reported one by one.
const maxInvalid = 5

// invalidNames gathers the impossible names of one list.
type invalidNames struct {
	found []string
	more  int
}

func (n *invalidNames) add(position int, err error) {
	if len(n.found) == maxInvalid {
		n.more++
		return
	}
	n.found = append(n.found, fmt.Sprintf("item %d is not tracked: %v", position, err))
}

// problems returns one Problem for each of the first names, and one that counts the others.
func (n *invalidNames) problems(key string) []Problem {
	problems := make([]Problem, 0, len(n.found)+1)
	for _, text := range n.found {
		problems = append(problems, Problem{Message: fmt.Sprintf(
			"annotation %q: %s: correct the name or remove it", key, text)})
	}
	if n.more > 0 {
		problems = append(problems, Problem{Message: fmt.Sprintf(
			"annotation %q: %d more items are not names of objects: correct or remove them", key, n.more)})
	}
	return problems
}
