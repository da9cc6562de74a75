package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const (
	// maxEffects is how many effects of one workload the text has, maxWorkloads and maxObjects how many workloads and objects of
	// one group. JSON has all.
	maxEffects   = 5
	maxWorkloads = 50
	maxObjects   = 50
)

// Write writes the Report for a person to read.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Workloads compared: %d, treated differently: %d\n", r.Compared, r.Different)
	if len(r.Settings) > 0 {
		b.WriteString("\nSettings of Reloader\n")
	}
	for _, s := range r.Settings {
		fmt.Fprintf(&b, "  %s: %s\n", s.Name, s.Message)
	}
	for _, g := range r.Groups {
		g.write(&b)
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = reference.Printable(line) // problems repeat texts of annotations
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

func (g Group) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n  Reloader:     %s\n  pod-reloader: %s\n  What to do:   %s\n", g.Reason, g.Reloader, g.Here, g.Advice)
	for _, d := range g.Workloads[:min(len(g.Workloads), maxWorkloads)] {
		d.write(b)
	}
	more(b, "  ", len(g.Workloads)-maxWorkloads, "workload")
	for _, o := range g.Objects[:min(len(g.Objects), maxObjects)] {
		fmt.Fprintf(b, "  - %s/%s -n %s\n", o.Kind, o.Name, o.Namespace)
	}
	more(b, "  ", len(g.Objects)-maxObjects, "object")
}

func (d Difference) write(b *strings.Builder) {
	fmt.Fprintf(b, "  - %s/%s -n %s\n", strings.ToLower(d.Kind), d.Name, d.Namespace)
	for _, e := range d.Effects[:min(len(d.Effects), maxEffects)] {
		fmt.Fprintf(b, "      %s %s: %s -> %s\n", e.Object, e.Change, e.Reloader, e.Here)
	}
	more(b, "      ", len(d.Effects)-maxEffects, "change")
	for _, p := range d.Problems {
		fmt.Fprintf(b, "      %s\n", p)
	}
}

func more(b *strings.Builder, indent string, n int, what string) {
	if n > 0 {
		fmt.Fprintf(b, "%sand %s: -o json lists them\n", indent, reference.Count(n, "more "+what))
	}
}
