package explain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Write writes the Report for a person to read.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s: %s\n", r.Kind, r.Namespace, r.Name, r.headline())
	if r.Pending != "" {
		fmt.Fprintf(&b, "A new template does not replace %s\n", r.kept())
	}
	r.writeRows(&b)
	for _, reason := range r.NotTracked {
		fmt.Fprintf(&b, "\nNot tracked: %s\n", reason)
	}
	r.writeLast(&b)
	if r.Run != "" {
		fmt.Fprintf(&b, "\nThe run for the last reload %s.\n", r.Run)
	}
	for _, path := range r.Paths {
		fmt.Fprintf(&b, "\nPath: %s\n", strings.Join(path, " → "))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nWarning %s ago, %s: %s\n", w.Age, w.Reason, reference.OneLine(w.Message))
	}
	if r.FailingWatch != nil {
		b.WriteString("\n" + r.FailingWatch.ofWatch())
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "\nProblem: %s\n", p)
	}
	return writePrintable(w, b.String())
}

// writePrintable writes lines: Events and errors repeat texts of other programs.
func writePrintable(w io.Writer, text string) error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = reference.Printable(line)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

// At returns a copy of a Warning with its age at a time; nil of nil.
func (w *Warning) At(now time.Time) *Warning {
	if w == nil {
		return nil
	}
	aged := *w
	aged.Age = age(now, w.Time)
	return &aged
}

// ofWatch is the line about a watch that fails.
func (w Warning) ofWatch() string {
	return fmt.Sprintf("A watch of pod-reloader fails, as reported %s ago: %s\n", w.Age, w.Message)
}

func (r Report) headline() string {
	switch policy.Action(r.Verdict) {
	case policy.Reload:
		return "a reload is due (" + r.Reason + ")"
	case policy.Hold:
		return "a reload is held (" + r.Reason + ")"
	case policy.Nothing:
		return "nothing is due (" + r.Reason + ")"
	default:
		return "it is unknown whether a reload is due (" + r.Reason + ")"
	}
}

// kept says which pods a new template does not replace, and why.
func (r Report) kept() string {
	switch {
	case r.partition == "":
		return "the running pods by itself: " + r.Pending + "."
	case r.Kind != "StatefulSet" || strings.HasSuffix(r.partition, "%"):
		return "all running pods by itself: " + r.Pending + "."
	case r.partition == "1":
		return "all running pods by itself: " + r.Pending + " keeps the first pod."
	default:
		return fmt.Sprintf("all running pods by itself: %s keeps the first %s pods.", r.Pending, r.partition)
	}
}

func (r Report) writeRows(b *strings.Builder) {
	if len(r.Configuration) == 0 {
		return
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CONFIGURATION\tPODS RUN WITH\tNOW\tDIFFERS")
	var failed []string
	for _, row := range r.Configuration {
		if row.Error != "" { // longer than a column
			failed = append(failed, fmt.Sprintf("\nCannot read %s: %s\n", row.Ref, reference.OneLine(row.Error)))
		}
		name := row.Ref
		if row.Required {
			name += " (required)"
		}
		known := row.Known
		if row.Adopted {
			known += " (adopted)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, known, row.Now, cmp.Or(row.Differs, "no"))
	}
	_ = t.Flush() // a strings.Builder takes everything
	b.WriteString(strings.Join(failed, ""))
}

func (r Report) writeLast(b *strings.Builder) {
	if r.LastReload == nil {
		if r.ConfigHash != "" {
			b.WriteString("\nNo reload is recorded for the present pod template.\n")
		}
		return
	}
	fmt.Fprintf(b, "\nLast reload: %s\n", at(r.LastReload.Time, r.LastReload.Age, r.LastReload.because()))
	for _, c := range r.LastReload.Changes {
		fmt.Fprintf(b, "  %s\n", c)
	}
	if unnamed := record.Unnamed(len(r.LastReload.Changes), r.LastReload.More); unnamed != "" {
		fmt.Fprintf(b, "  %s\n", unnamed)
	}
	if len(r.Earlier) > 0 {
		b.WriteString("\nEarlier reloads:\n")
	}
	for _, earlier := range r.Earlier {
		fmt.Fprintf(b, "  %s\n", at(earlier.Time, earlier.Age, causeText(earlier.Cause)))
	}
}

// at says when a reload was, and why.
func at(when time.Time, age, why string) string {
	return fmt.Sprintf("%s (%s ago), %s", when.Format(time.RFC3339), age, why)
}

// because says why the reload was, before the changes if there are some.
func (l LastReload) because() string {
	why := causeText(l.Cause)
	switch {
	case len(l.Changes) == 0 && l.More == 0:
		return why + "."
	case l.Cause == record.CauseRelease:
		return why + ", which also brought:"
	default:
		return why + ":"
	}
}

// causeText says in words what last-reload says in one. A later version may know further ones.
func causeText(cause string) string {
	switch cause {
	case record.CauseConfigChange:
		return "because configuration changed"
	case record.CauseVerifiedReload:
		return "requested by a client with a verified digest"
	case record.CauseListEdit:
		return "because the list of config objects was edited"
	case record.CauseRelease:
		return "with a release"
	default:
		return cause
	}
}
