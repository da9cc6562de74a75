package jsonpath

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is what is wrong with an expression.
type Fault struct {
	Position int // the byte, counted from 1; 0: the whole expression
	Reason   string
}

// MaxLength is how many bytes an expression may have. Paths of objects are much
// shorter, and the cost of some expressions grows with the square of the length.
const MaxLength = 4096

// Parse compiles an expression such as
//
//	spec.ingressClassName
//	metadata.labels['app.kubernetes.io/name']   (or metadata.labels.app\.kubernetes\.io/name)
//	spec.rules[0].host, spec.rules[-1].host, spec.rules[*].host
//	status.conditions[?(@.type=="Ready")].status
//
// A leading "$" and "." are allowed. What names no definite place (recursive
// descent, slices, unions, templates in braces) is a fault.
func Parse(expression string) (Path, *Fault) {
	p := &parser{text: expression}
	switch {
	case len(expression) > MaxLength:
		return Path{}, &Fault{Reason: fmt.Sprintf("is longer than %d bytes", MaxLength)}
	case strings.HasPrefix(expression, "$"):
		p.pos = 1
	case strings.TrimSpace(expression) == "":
		return Path{}, &Fault{Reason: "is empty; write a path such as metadata.name"}
	case !strings.HasPrefix(expression, ".") && !strings.HasPrefix(expression, "["):
		if fault := p.name(); fault != nil {
			return Path{}, fault
		}
	}
	if fault := p.rest(); fault != nil {
		return Path{}, fault
	}
	if len(p.steps) == 0 {
		return Path{}, &Fault{Reason: "names no field; write a path such as metadata.name"}
	}
	return Path{text: expression, steps: p.steps, plain: !slices.ContainsFunc(p.steps, step.branches)}, nil
}

// parser reads one expression from left to right.
type parser struct {
	text  string
	pos   int // of the next byte
	steps []step
}

func (p *parser) fault(at int, format string, args ...any) *Fault {
	return &Fault{Position: at + 1, Reason: fmt.Sprintf(format, args...)}
}

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *parser) add(s step, at int) {
	s.at = at + 1
	p.steps = append(p.steps, s)
}

// rest reads the steps that begin with a dot or a bracket.
func (p *parser) rest() *Fault {
	for p.pos < len(p.text) {
		var fault *Fault
		switch p.peek() {
		case '.':
			p.pos++
			fault = p.name()
		case '[':
			fault = p.bracket()
		default:
			fault = p.unexpected()
		}
		if fault != nil {
			return fault
		}
	}
	return nil
}

func (p *parser) unexpected() *Fault {
	char := []rune(p.text[p.pos:])[0]
	switch char {
	case '{', '}':
		return p.fault(p.pos, "braces are not part of the expression; write the path alone")
	default:
		return p.fault(p.pos, "unexpected %q; quote a name that contains it: ['name']", char)
	}
}

// name reads a field's name up to the next dot or bracket; a backslash takes
// the character after it as it is.
func (p *parser) name() *Fault {
	start := p.pos
	if p.peek() == '.' {
		return p.fault(start, "recursive descent is not supported; write the whole path")
	}
	var name strings.Builder
	for p.pos < len(p.text) && p.peek() != '.' && p.peek() != '[' {
		if strings.IndexByte(" \t\r\n,]$@{}'\"()", p.peek()) >= 0 {
			return p.unexpected()
		}
		if p.peek() == '\\' {
			if p.pos++; p.pos == len(p.text) {
				return p.fault(p.pos-1, "a backslash needs a character after it")
			}
		}
		name.WriteByte(p.peek())
		p.pos++
	}
	switch {
	case p.pos == start:
		return p.fault(start, "a field's name is missing after the dot")
	case p.text[start:p.pos] == "*":
		p.add(step{kind: stepEvery}, start)
	default:
		p.add(step{kind: stepField, name: name.String()}, start)
	}
	return nil
}

// bracket reads [0], [*], ['name'] or [?(...)].
func (p *parser) bracket() *Fault {
	start := p.pos
	p.pos++
	switch p.peek() {
	case '\'', '"':
		return p.quoted(start)
	case '?':
		return p.filtered(start)
	}
	end := strings.IndexByte(p.text[p.pos:], ']')
	if end < 0 {
		return p.fault(start, "the bracket is not closed")
	}
	content := p.text[p.pos : p.pos+end]
	p.pos += end + 1
	if content == "*" {
		p.add(step{kind: stepEvery}, start)
		return nil
	}
	index, err := strconv.Atoi(content)
	switch {
	case err == nil:
		p.add(step{kind: stepIndex, index: index}, start)
		return nil
	case strings.Contains(content, ":"):
		return p.fault(start+1, "slices are not supported; write one index or [*]")
	case strings.Contains(content, ","):
		return p.fault(start+1, "unions are not supported; write one expression for each")
	default:
		return p.fault(start+1, "%q is no index; write a number, * or a name in quotes", content)
	}
}

// quoted reads ['name'].
func (p *parser) quoted(start int) *Fault {
	name, ok := p.quote()
	if !ok {
		return p.fault(start+1, "the quote is not closed")
	}
	if p.peek() != ']' {
		return p.fault(p.pos, "] is missing after the quoted name")
	}
	p.pos++
	p.add(step{kind: stepField, name: name}, start)
	return nil
}

// quote reads a quoted string; a backslash takes the character after it as it is.
func (p *parser) quote() (string, bool) {
	end := p.peek()
	p.pos++
	var content strings.Builder
	for ; p.pos < len(p.text); p.pos++ {
		char := p.peek()
		if char == end {
			p.pos++
			return content.String(), true
		}
		if char == '\\' {
			p.pos++
			char = p.peek()
		}
		content.WriteByte(char)
	}
	return "", false
}

// filtered reads [?(@.path)], [?(@.path=="literal")] and the same with !=.
func (p *parser) filtered(start int) *Fault {
	if !strings.HasPrefix(p.text[p.pos:], "?(@") {
		return p.fault(p.pos, "a filter begins with ?(@ as in [?(@.type==\"Ready\")]")
	}
	p.pos += len("?(@")
	inner := &parser{text: p.text[:p.operator()], pos: p.pos}
	if fault := inner.rest(); fault != nil {
		return fault
	}
	if len(inner.steps) == 0 {
		return p.fault(p.pos, "the filter names no field")
	}
	p.pos = inner.pos
	chosen := filter{path: inner.steps}
	if fault := p.comparison(&chosen); fault != nil {
		return fault
	}
	if !strings.HasPrefix(p.text[p.pos:], ")]") {
		return p.fault(p.pos, "the filter is not closed by )]")
	}
	p.pos += len(")]")
	p.add(step{kind: stepFilter, filter: chosen}, start)
	return nil
}

// operator finds where the filter's path ends.
func (p *parser) operator() int {
	ahead := &parser{text: p.text, pos: p.pos}
	for depth := 0; ahead.pos < len(p.text); ahead.pos++ {
		switch ahead.peek() {
		case '\'', '"':
			ahead.quote()
			ahead.pos--
		case '[':
			depth++
		case ']':
			depth--
		case '\\':
			ahead.pos++
		case '=', '!', '<', '>', ')', ' ':
			if depth <= 0 {
				return ahead.pos
			}
		}
	}
	return len(p.text)
}

// comparison reads the operator and the literal of a filter, if there are any.
func (p *parser) comparison(into *filter) *Fault {
	p.spaces()
	if p.peek() == ')' {
		return nil
	}
	operator := p.text[p.pos:min(p.pos+2, len(p.text))]
	if operator != "==" && operator != "!=" {
		return p.fault(p.pos, "a filter compares with == or !=")
	}
	p.pos += 2
	p.spaces()
	start := p.pos
	into.compare, into.negate = true, operator == "!="
	if p.peek() == '\'' || p.peek() == '"' {
		var ok bool
		if into.literal, ok = p.quote(); !ok {
			return p.fault(start, "the quote is not closed")
		}
		p.spaces()
		return nil
	}
	end := max(strings.IndexByte(p.text[start:], ')'), 0)
	literal, ok := literalOf(strings.TrimSpace(p.text[start : start+end]))
	if !ok {
		return p.fault(start, "compare with a text in quotes, a number, true or false")
	}
	into.literal = literal
	p.pos = start + end
	return nil
}

func (p *parser) spaces() {
	for p.peek() == ' ' {
		p.pos++
	}
}

// literalOf returns a number, true or false as the text that a field with this value has: 80.0 is 80.
func literalOf(text string) (string, bool) {
	if text == "true" || text == "false" {
		return text, true
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Text(whole), true
	}
	number, err := strconv.ParseFloat(text, 64)
	decimal := strings.Trim(text, "+-.0123456789eE") == "" // neither Inf, NaN nor hexadecimal
	return Text(number), err == nil && decimal
}

// Operator finds the operator of a comparison PATH=VALUE, PATH==VALUE or
// PATH!=VALUE, up to the first comma; -1 if there is none. What is in brackets
// belongs to the path.
func Operator(from string) int {
	p := &parser{text: from}
	for depth := 0; p.pos < len(from); p.pos++ {
		switch char := p.peek(); {
		case char == '\\':
			p.pos++
		case char == '[':
			depth++
		case char == ']':
			depth = max(depth-1, 0)
		case depth > 0 && (char == '\'' || char == '"'):
			p.quote()
			p.pos--
		case depth > 0:
		case char == ',':
			return -1
		case char == '=', strings.HasPrefix(from[p.pos:], "!="):
			return p.pos
		}
	}
	return -1
}
