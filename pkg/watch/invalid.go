package watch

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ConfigError is one fault of a configuration. The constructors report every
// fault they find, joined by errors.Join; errors.As finds the first.
type ConfigError struct {
	// Field of the configuration, with the place in a list, counted from 0:
	// "IndexBy[1]".
	Field string
	// Expression is what was written; empty where the field itself is missing.
	Expression string
	// Position is the character (rune) of Expression at which the fault is,
	// counted from 1, one more than there are where something is missing at the
	// end; 0 where it is the whole expression.
	Position int
	// Reason says what is wrong and what to write instead.
	Reason string
}

// Error names field, expression and position.
func (e *ConfigError) Error() string {
	var text strings.Builder
	text.WriteString(e.Field)
	if e.Expression != "" {
		fmt.Fprintf(&text, " %q", e.Expression)
	}
	if e.Position > 0 {
		fmt.Fprintf(&text, ", character %d", e.Position)
	}
	text.WriteString(": " + e.Reason)
	return text.String()
}

// place is where in an expression a parser met a fault.
type place struct {
	position int // the byte, counted from 1; 0: the whole expression
	reason   string
}

// in makes the fault one of the named field. Parsers count bytes, people
// characters.
func (p *place) in(field, expression string) *ConfigError {
	position := p.position
	if position > 0 {
		position = utf8.RuneCountInString(expression[:position-1]) + 1
	}
	return &ConfigError{Field: field, Expression: expression, Position: position, Reason: p.reason}
}
