// Package narration writes the demo's output: titles with a clock, commands as a user types them, what they print, and
// what was seen when. Colours are for terminals only.
package narration

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// width is how long a line of prose gets at most; tables and commands are left as they are.
const width = 110

// The columns: prose under a title, and what a command prints under the command.
const (
	indent = "   "
	deeper = "     "
)

// Narrator writes to one writer. It is for one goroutine.
type Narrator struct {
	out     io.Writer
	colours bool
	now     func() time.Time
	begun   time.Time
	steps   int
}

// New begins a narration. now is the clock.
func New(out io.Writer, colours bool, now func() time.Time) *Narrator {
	return &Narrator{out: out, colours: colours, now: now, begun: now()}
}

// Elapsed is the time since the narration began.
func (n *Narrator) Elapsed() time.Duration { return n.now().Sub(n.begun) }

// Title begins the narration or its end.
func (n *Narrator) Title(text string) {
	fmt.Fprintf(n.out, "%s\n", n.Bold(text))
}

// Step begins a step. Steps are numbered, and the line ends with the clock.
func (n *Narrator) Step(title string) {
	n.steps++
	head := fmt.Sprintf("%-2d %s", n.steps, title)
	clock := Seconds(n.Elapsed())
	space := max(1, width-utf8.RuneCountInString(head)-len(clock))
	fmt.Fprintf(n.out, "\n%s%s%s\n", n.Bold(head), strings.Repeat(" ", space), n.Dim(clock))
}

// Say writes a sentence, wrapped.
func (n *Narrator) Say(format string, args ...any) {
	n.lines(indent, Wrap(fmt.Sprintf(format, args...), width-len(indent)), nil)
}

// Command shows a command as one would type it.
func (n *Narrator) Command(argv []string) {
	fmt.Fprintf(n.out, "%s%s\n", indent, n.Bold("$ "+Quote(argv)))
}

// Output shows what a command printed, as it is.
func (n *Narrator) Output(text string) {
	text = strings.TrimRight(text, "\n")
	if text != "" {
		n.lines(deeper, strings.Split(text, "\n"), n.Dim)
	}
}

// Stderr shows what a command wrote to standard error, wrapped. Warnings that do not mention the subject are cut to one
// line.
func (n *Narrator) Stderr(text, subject string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		wrapped := Wrap(line, width-len(deeper)-2)
		if len(wrapped) > 1 && strings.HasPrefix(line, "Warning: ") && !strings.Contains(line, subject) {
			wrapped = []string{wrapped[0] + " …"}
		}
		n.lines(deeper, wrapped, n.yellow)
	}
}

// Seen says what the observer saw, and when.
func (n *Narrator) Seen(when, what string) {
	fmt.Fprintf(n.out, "%s%s %9s  %s\n", indent, n.Green("→"), when, what)
}

// Failure shows what went wrong.
func (n *Narrator) Failure(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		n.lines(indent, Wrap(line, width-len(indent)), n.Red)
	}
}

// Plain writes lines as they are, with an empty one before.
func (n *Narrator) Plain(text string) {
	fmt.Fprintf(n.out, "\n%s", text)
}

func (n *Narrator) lines(begin string, lines []string, decorate func(string) string) {
	for _, line := range lines {
		if decorate != nil && line != "" {
			line = decorate(line)
		}
		fmt.Fprintln(n.out, strings.TrimRight(begin+line, " "))
	}
}

// Bold decorates a text where colours are wanted.
func (n *Narrator) Bold(text string) string { return n.colour("1", text) }

// Dim is like [Narrator.Bold].
func (n *Narrator) Dim(text string) string { return n.colour("2", text) }

// Green is like [Narrator.Bold].

// Green is like [Narrator.Bold].
func (n *Narrator) Green(text string) string { return n.colour("32", text) }

// Red is like [Narrator.Bold].

// Red is like [Narrator.Bold].
func (n *Narrator) Red(text string) string { return n.colour("31", text) }

func (n *Narrator) yellow(text string) string { return n.colour("33", text) }

func (n *Narrator) colour(code, text string) string {
	if !n.colours {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
