package pattern

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// cost estimates how many instructions a tree compiles to: a repetition compiles its part again for each time.
func cost(tree *syntax.Regexp) int {
	size := 1
	if tree.Op == syntax.OpLiteral {
		size = len(tree.Rune)
	}
	if tree.Op == syntax.OpCharClass {
		size += len(tree.Rune) / 16
	}
	for _, part := range tree.Sub {
		size += cost(part)
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min+1, tree.Max)
	}
	return size
}

// rest is what an expression has after its literal prefix.
type rest int

const (
	// otherRest is left to the regular expression.
	otherRest rest = iota
	// anyRest is ".*", someRest ".+": what most expressions end with. They need not be compiled.
	anyRest
	someRest
)

// outline returns what each text that a tree matches as a whole begins with, and what may follow.
func outline(tree *syntax.Regexp) (prefix string, after rest) {
	parts := withoutAnchors(tree)
	if parts[0].Op == syntax.OpLiteral && parts[0].Flags&syntax.FoldCase == 0 {
		prefix, parts = string(parts[0].Rune), parts[1:]
	}
	if len(parts) != 1 || len(parts[0].Sub) != 1 || parts[0].Sub[0].Op != syntax.OpAnyCharNotNL {
		return prefix, otherRest
	}
	switch parts[0].Op {
	case syntax.OpStar:
		return prefix, anyRest
	case syntax.OpPlus:
		return prefix, someRest
	default:
		return prefix, otherRest
	}
}

// withoutAnchors returns the parts of a tree, at least one, without the anchors that add nothing where a whole text is matched.
func withoutAnchors(tree *syntax.Regexp) []*syntax.Regexp {
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	if len(parts) > 1 && parts[0].Op == syntax.OpBeginText {
		parts = parts[1:]
	}
	if last := len(parts) - 1; last > 0 && parts[last].Op == syntax.OpEndText {
		parts = parts[:last]
	}
	return parts
}

// possible reports whether a tree can match a part of a name. It errs towards true: what begins with a dash, say, is not
// looked for.
func possible(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		foldCase := tree.Flags&syntax.FoldCase != 0
		return !slices.ContainsFunc(tree.Rune, func(r rune) bool { return !inName(r) && (!foldCase || !inName(folded(r))) })
	case syntax.OpCharClass:
		return overlapsNames(tree.Rune)
	case syntax.OpRepeat:
		return tree.Min == 0 || possible(tree.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return possible(tree.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(tree.Sub, func(part *syntax.Regexp) bool { return !possible(part) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(tree.Sub, possible)
	default: // a star, a question mark, any character, an empty match
		return true
	}
}

// overlapsNames reports whether one of the ranges, given by their bounds, has a character of names.
func overlapsNames(bounds []rune) bool {
	for span := range slices.Chunk(bounds, 2) {
		for _, r := range [...][2]rune{{'a', 'z'}, {'0', '9'}, {'-', '.'}} {
			if span[0] <= r[1] && r[0] <= span[1] {
				return true
			}
		}
	}
	return false
}

func inName(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '.'
}

// folded returns the small ASCII letter that is equal to a rune in any case, or the rune. Unicode has more than one
// capital for some, such as the Kelvin sign for k.
func folded(r rune) rune {
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if inName(other) {
			return other
		}
	}
	return r
}
