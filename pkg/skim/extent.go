package skim

import "bytes"

// extent finds the end of one JSON value, whose text may come in pieces.
type extent struct {
	begun bool
	// scalar is true if the value is a number, true, false or null: its end is where another character begins.
	scalar bool
	// depth is the number of brackets that are open.
	depth int
	// quoted is true inside a string, escaped if its next byte is escaped.
	quoted, escaped bool
}

// scan returns how many bytes of a piece belong to the value, and whether the value ends there. White space before the
// value must be taken off.
func (e *extent) scan(piece []byte) (n int, complete bool) {
	for n < len(piece) {
		if e.quoted {
			n += e.string(piece[n:])
			if !e.quoted && e.depth == 0 {
				return n, true
			}
			continue
		}
		c := piece[n]
		if e.scalar && delimits(c) {
			return n, true
		}
		n++
		switch c {
		case '"':
			e.quoted = true
		case '{', '[':
			e.depth++
		case '}', ']':
			e.depth--
			if e.depth <= 0 {
				return n, true
			}
		default:
			e.scalar = e.scalar || !e.begun
		}
		e.begun = true
	}
	return n, false
}

// string returns how many bytes belong to the string that the text is inside of.
func (e *extent) string(piece []byte) int {
	if e.escaped {
		e.escaped = false
		return 1
	}
	quote := bytes.IndexByte(piece, '"')
	until := quote
	if quote < 0 {
		until = len(piece)
	}
	if escape := bytes.IndexByte(piece[:until], '\\'); escape >= 0 {
		e.escaped = true
		return escape + 1
	}
	if quote < 0 {
		return len(piece)
	}
	e.quoted = false
	return quote + 1
}

// delimits reports whether a character cannot be part of a number or a literal.
func delimits(c byte) bool {
	switch c {
	case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\r', '\n':
		return true
	default:
		return false
	}
}
