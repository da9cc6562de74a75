package annotation

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// SAP is the dialect of SAP's pod-reloader: two lists of names on the workload. Every Change of a listed object
// triggers, creation and deletion included. A third list, which SAP's does not have, names custom resources.
type SAP struct {
	Keys Keys
	// Resource says why the objects of a custom resource cannot be tracked; nil where it is not known. A Ref of one is tracked
	// nevertheless: the resource may be configured later, and the Ref is held until then.
	Resource func(reference.Kind) error
	// Workloads finds the custom resources that a workload runs with without naming them; nil finds none.
	Workloads Finder
	// WithoutSecrets leaves the list of Secrets unread (--secrets=false).
	WithoutSecrets bool
}

var _ Dialect = SAP{}

// Parse reads the lists. A name that cannot exist is a Problem, as is a list under a misspelt key, a list on the pod template
// where the workload has none, and a label that looks like one that excludes the workload.
func (s SAP) Parse(src Source) (Intent, []Problem) {
	l := lists{source: src}
	l.intent.ConfigMaps = l.read(reference.ConfigMap, s.Keys.ConfigMaps)
	if s.WithoutSecrets {
		l.reportNotHandled(s.Keys.Secrets)
	} else {
		l.intent.Secrets = l.read(reference.Secret, s.Keys.Secrets)
	}
	l.misspelled(s.Keys.Referents)
	if value, ok := src.Workload[s.Keys.Referents]; ok {
		l.readReferents(s, value)
	} else {
		l.misplaced(s.Keys.Referents)
	}
	l.exclusion(s.Keys.IgnoredLabel)
	l.exclusion(s.Keys.DisabledLabel)
	if s.Workloads != nil {
		l.find(s.Workloads)
	}
	return l.intent, l.problems
}

// lists is one reading of the two lists.
type lists struct {
	source   Source
	intent   Intent
	problems []Problem
}

// read takes one list in, and returns its items for Intent.ConfigMaps or Intent.Secrets.
func (l *lists) read(kind reference.Kind, key string) []string {
	l.misspelled(key)
	value, there := l.source.Workload[key]
	if !there {
		l.misplaced(key)
		return nil
	}
	list := readList(value, names(), func() map[string]bool { return required(l.source.References, kind) })
	l.intent.Asked = l.intent.Asked || list.asked
	l.intent.Dropped += list.dropped
	for _, name := range list.names {
		l.intent.track(reference.Ref{Kind: kind, Name: name}, Trigger{OnCreate: true, OnDelete: true})
	}
	l.problems = append(l.problems, list.wrong.problems(key, correctName)...)
	return list.written
}

// reportNotHandled reports a list that is not read.
func (l *lists) reportNotHandled(key string) {
	if longerThan(l.source.Workload[key], 0) {
		l.intent.Asked = true
		l.problems = append(l.problems, Problem{Message: fmt.Sprintf(
			"annotation %q has no effect: this installation does not handle secrets (--secrets=false)", key)})
	}
}

// required returns the names of a kind without which the pods cannot start.
func required(references []reference.Reference, kind reference.Kind) map[string]bool {
	names := map[string]bool{}
	for _, r := range references {
		if r.Kind == kind && !r.Optional {
			names[r.Name] = true
		}
	}
	return names
}

// onTemplate is the Problem of an annotation of the pod template that is read on the workload only.
func onTemplate(key string) Problem {
	return Problem{Message: fmt.Sprintf("annotation %q on the pod template has no effect: put it into metadata.annotations of the workload", key)}
}

// misplaced looks for a list on the pod template.
func (l *lists) misplaced(key string) {
	if _, misplaced := l.source.Template[key]; misplaced {
		l.problems = append(l.problems, onTemplate(key))
	}
}

// misspelled looks for a list under a key that nothing reads, be it beside the right one. A workload may have thousands of such keys.
func (l *lists) misspelled(key string) {
	prefix, name, _ := strings.Cut(key, "/")
	var found []string
	for other := range l.source.Workload {
		misspelt, ours := strings.CutPrefix(other, prefix+"/")
		if ours && other != key && isMisspelled(normalized(misspelt), normalized(name)) {
			found = append(found, other)
		}
	}
	slices.Sort(found)
	for _, other := range found[:min(len(found), maxMisspelt)] {
		l.problems = append(l.problems, Problem{Message: fmt.Sprintf(
			"annotation %q has no effect: use %q", other, key)})
	}
}

// exclusion looks for what was meant to exclude the workload and does not.
func (l *lists) exclusion(label string) {
	if value, there := l.source.Labels[label]; there && value != "true" && value != "false" {
		l.problems = append(l.problems, Problem{Message: fmt.Sprintf(
			"label %q has the value %s, which does not exclude the workload: use \"true\" or \"false\"", label, reference.Quote(value))})
	}
	if _, there := l.source.Workload[label]; there {
		l.problems = append(l.problems, Problem{Message: fmt.Sprintf(
			"annotation %q has no effect: it is a label", label)})
	}
}

// isMisspelled reports whether a text is another one, but for two letters at most: swapped, missing, wrong or too many.
func isMisspelled(text, other string) bool {
	return text == other || max(len(text)-len(other), len(other)-len(text)) <= 2 && reference.EditDistance(text, other) <= 2
}

// normalized returns what the likely misspellings of a name have in common: config-maps, configMaps and configmap are one.
func normalized(name string) string {
	return strings.TrimSuffix(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' {
			return -1
		}
		return unicode.ToLower(r)
	}, name), "s")
}
