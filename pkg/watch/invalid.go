package watch

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pod-reloader/pod-reloader/pkg/watch/jsonpath"
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

// configError makes the fault one of the named field. Parsers count bytes, people
// characters.
func configError(field, expression string, fault *jsonpath.Fault) *ConfigError {
	position := fault.Position
	if position > 0 {
		position = utf8.RuneCountInString(expression[:position-1]) + 1
	}
	return &ConfigError{Field: field, Expression: expression, Position: position, Reason: fault.Reason}
}
