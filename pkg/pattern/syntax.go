package pattern

import (
	"regexp/syntax"
	"slices"
	"strings"
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

// glob is what an expression has after its literal prefix, where that is nothing but ".*", ".+" and literals: most expressions are so.
// They need not be compiled, and take no longer for a name than to look for the literals in it.
type glob []gap // one at least

// gap is any text and a literal that follows it, which is empty at the end only.
type gap struct {
	// least is how many characters the text has at least, 0 or 1: so it is the same in bytes.
	least   int
	literal string
}

// literalPrefix returns what each text that a tree matches as a whole begins with, and what follows; nil if that is no glob.
func literalPrefix(tree *syntax.Regexp) (prefix string, after glob) {
	parts := withoutAnchors(tree)
	if literal, ok := literalOf(parts[0]); ok {
		prefix, parts = literal, parts[1:]
	}
	for _, part := range parts {
		last := len(after) - 1
		if literal, ok := literalOf(part); ok {
			if last < 0 || after[last].literal != "" {
				return prefix, nil
			}
			after[last].literal = literal
			continue
		}
		least, ok := wildcard(part)
		if last < 0 || after[last].literal != "" {
			after = append(after, gap{})
			last++
		}
		if after[last].least += least; !ok || after[last].least > 1 {
			return prefix, nil
		}
	}
	return prefix, after
}

func literalOf(part *syntax.Regexp) (string, bool) {
	return string(part.Rune), part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0
}

// wildcard reports whether a part is ".*" or ".+", and of how many bytes at least.
func wildcard(part *syntax.Regexp) (least int, ok bool) {
	if len(part.Sub) != 1 || part.Sub[0].Op != syntax.OpAnyCharNotNL {
		return 0, false
	}
	switch part.Op {
	case syntax.OpStar:
		return 0, true
	case syntax.OpPlus:
		return 1, true
	default:
		return 0, false
	}
}

// match reports whether a text is one of the glob. Each literal is taken where it is first: what is after it can only be longer so.
func (g glob) match(text string) bool {
	if strings.Contains(text, "\n") {
		return false // which no dot stands for
	}
	for ; ; g = g[1:] {
		gap := g[0]
		if len(text) < gap.least {
			return false
		}
		text = text[gap.least:]
		if len(g) == 1 {
			return strings.HasSuffix(text, gap.literal)
		}
		_, after, found := strings.Cut(text, gap.literal)
		if !found {
			return false
		}
		text = after
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

// canMatchName reports whether a tree can match a part of a name. It errs towards true: what begins with a dash, say, is not
// looked for.
func canMatchName(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		foldCase := tree.Flags&syntax.FoldCase != 0
		return !slices.ContainsFunc(tree.Rune, func(r rune) bool { return !inName(r) && (!foldCase || !inName(folded(r))) })
	case syntax.OpCharClass:
		return overlapsNames(tree.Rune)
	case syntax.OpRepeat:
		return tree.Min == 0 || canMatchName(tree.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return canMatchName(tree.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(tree.Sub, func(part *syntax.Regexp) bool { return !canMatchName(part) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(tree.Sub, canMatchName)
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
