package pattern

// Budget bounds the matching for one reading of a workload, where an Index does not know the matches: users choose the expressions, and
// with thousands of names they can take seconds. The zero value is a full one. One goroutine uses it.
type Budget struct{ steps int }

// Matching returns the names that a pattern matches, in their order, or false where that would take longer than the budget allows: what
// is quick, for all calls together.
func (b *Budget) Matching(p *Pattern, names []string) (matching []string, ok bool) {
	for _, name := range names {
		if b.steps += p.Effort(name); b.steps > quick {
			return nil, false
		}
		if p.Match(name) {
			matching = append(matching, name)
		}
	}
	return matching, true
}
