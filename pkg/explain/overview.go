package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Overview explains all workloads that ask for reloads, or have errors in their annotations. Its JSON form is stable: fields may come, none goes.
type Overview struct {
	// Workloads are sorted by namespace, kind and name.
	Workloads []Report `json:"workloads"`
	// NotAsked is how many further workloads have no annotation that asks for reloads.
	NotAsked int `json:"notAsked"`
	// Problems say which workloads are not known.
	Problems []string `json:"problems,omitempty"`
	// FailingWatch is what the installation has reported of watches that fail, so that changes are found late; nil if they work.
	FailingWatch *Warning `json:"failingWatch,omitempty"`
	// AllNamespaces says that the Workloads can be of several namespaces.
	AllNamespaces bool `json:"-"`
}

// Write writes the Overview for a person to read: a line for each workload, and then what is wrong.
func (o Overview) Write(w io.Writer) error {
	var b strings.Builder
	if len(o.Workloads) > 0 {
		o.writeTable(&b)
		o.writeFindings(&b)
		b.WriteString("\n")
	}
	if o.FailingWatch != nil {
		b.WriteString(o.FailingWatch.ofWatch() + "\n")
	}
	for _, p := range o.Problems {
		fmt.Fprintf(&b, "Problem: %s\n\n", reference.OneLine(p))
	}
	b.WriteString(o.summary() + "\n")
	return writePrintable(w, b.String())
}

func (o Overview) writeTable(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	row := func(namespace string, columns ...string) {
		if o.AllNamespaces {
			columns = append([]string{namespace}, columns...)
		}
		fmt.Fprintln(t, strings.Join(columns, "\t"))
	}
	row("NAMESPACE", "WORKLOAD", "DUE", "LAST RELOAD", "REASON")
	for _, r := range o.Workloads {
		last := "-"
		if r.LastReload != nil {
			last = r.LastReload.Age + " ago"
		}
		row(r.Namespace, r.id(), r.due(), last, reference.OneLine(r.Reason))
	}
	_ = t.Flush() // a strings.Builder takes everything
}

// id is how a command line names the workload, without its namespace.
func (r Report) id() string { return strings.ToLower(r.Kind) + "/" + r.Name }

// due says in a word whether a reload is due.
func (r Report) due() string {
	switch policy.Action(r.Verdict) {
	case policy.Reload:
		return "yes"
	case policy.Hold:
		return "held"
	case policy.Nothing:
		return "no"
	default:
		return unknown
	}
}

// finding is what is wrong with workloads. Their names stand between the two texts.
type finding struct{ before, after string }

// found are the workloads with a finding.
type found struct {
	finding

	workloads []string
	// last is the newest of the Warnings; nil if it is a Problem.
	last *Warning
}

func (f *found) add(workload string, w *Warning) {
	f.workloads = append(f.workloads, workload)
	if f.last == nil || w != nil && f.last.Time.Before(w.Time) {
		f.last = w
	}
}

func (f *found) String() string {
	workloads := f.workloads[0]
	if n := len(f.workloads); n > 1 {
		workloads = reference.Count(n, "workload")
	}
	if f.last != nil {
		workloads += ", " + f.last.Age + " ago"
	}
	return f.before + workloads + reference.OneLine(f.after)
}

// writeFindings writes what is wrong with the workloads. What is wrong with several of them is one line.
func (o Overview) writeFindings(b *strings.Builder) {
	var all []*found
	by := map[finding]*found{}
	add := func(workload string, f finding, w *Warning) {
		if by[f] == nil {
			by[f] = &found{finding: f}
			all = append(all, by[f])
		}
		by[f].add(workload, w)
	}
	for _, r := range o.Workloads {
		workload := r.id()
		if o.AllNamespaces {
			workload += " -n " + r.Namespace
		}
		for _, w := range r.Warnings {
			if slices.Contains(r.Problems, w.Message) || strings.HasSuffix(w.Message, r.Reason) {
				continue // it is said already
			}
			add(workload, finding{"Warning for ", ", " + w.Reason + ": " + w.Message}, &w)
		}
		for _, p := range r.Problems {
			add(workload, finding{"Problem of ", ": " + p}, nil)
		}
	}
	for _, f := range all {
		b.WriteString("\n" + f.String() + "\n")
	}
}

// summary counts the workloads.
func (o Overview) summary() string {
	counts := map[string]int{}
	for _, r := range o.Workloads {
		counts[r.due()]++
	}
	var parts []string
	for _, part := range []struct{ due, text string }{{"yes", "due"}, {"held", "held"}, {unknown, unknown}} {
		if n := counts[part.due]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.text))
		}
	}
	text := fmt.Sprintf("%s: %s.", reference.Count(len(o.Workloads), "workload"), cmp.Or(strings.Join(parts, ", "), "none is due"))
	if o.NotAsked > 0 {
		text += fmt.Sprintf(" Without an annotation that asks for reloads: %d.", o.NotAsked)
	}
	return text
}
