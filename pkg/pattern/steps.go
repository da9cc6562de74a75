package pattern

import "regexp/syntax"

// longestName is how many characters a name can have.
const longestName = 253

// stepsWithin returns how many steps the match of a whole name can take, or false where that is more than a number. A match follows
// all ways through the program at once, and looks at each instruction once per character at most. Here each character is of every
// class: no name has a match of more steps. To find out takes no more steps than the number.
func stepsWithin(tree *syntax.Regexp, most int) (steps int, ok bool) {
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0, true // the regular expression says so as well
	}
	w := walk{program: program, at: make([]int, len(program.Inst))}
	next := []uint32{uint32(program.Start)}
	for w.round = 1; w.round <= longestName && len(next) > 0; w.round++ {
		w.waiting = nil
		for _, i := range next {
			w.follow(i)
		}
		if w.steps > most {
			return w.steps, false
		}
		next = next[:0]
		for _, i := range w.waiting {
			next = append(next, program.Inst[i].Out)
		}
	}
	return w.steps, true
}

// walk follows all ways through a program at once.
type walk struct {
	program *syntax.Prog
	// at has the round in which each instruction was looked at last.
	at []int
	// round counts characters, from 1.
	round, steps int
	// waiting are the instructions that take the character of the round.
	waiting []uint32
}

// follow looks at an instruction, and at all that it leads to without a character.
func (w *walk) follow(i uint32) {
	if w.at[i] == w.round {
		return
	}
	w.at[i] = w.round
	w.steps++
	switch inst := &w.program.Inst[i]; inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		w.follow(inst.Out)
		w.follow(inst.Arg)
	case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
		w.follow(inst.Out)
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		w.waiting = append(w.waiting, i)
	case syntax.InstMatch, syntax.InstFail:
	}
}
