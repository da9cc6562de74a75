package scorecard

// Finding is what became of a promise.
type Finding struct {
	// Observed says it in a few words.
	Observed string
	// Kept says whether it is what was promised.
	Kept bool
}

// Row is one promise and what was observed.
type Row struct {
	// Act is what happens, Promised what shall come of it.
	Act, Promised string
	// Finding is what came of it; see [Row.Judged].
	Finding
	judged bool
	failed bool
}

// Card is the table. The zero value is empty.
type Card struct {
	rows []*Row
}

// Promise adds a row. Until it is judged it counts as broken, so that a step that ends early hides nothing.
func (c *Card) Promise(act, promised string) *Row {
	row := &Row{Act: act, Promised: promised, Finding: Finding{Observed: "not seen"}}
	c.rows = append(c.rows, row)
	return row
}

// Judge notes the finding.
func (r *Row) Judge(f Finding) {
	r.Finding, r.judged = f, true
	r.Kept = f.Kept && !r.failed
}

// Judged reports whether a finding was recorded.
func (r *Row) Judged() bool { return r.judged }

// Fail records that the step of the row went wrong: what is observed then proves nothing, whatever it is.
func (r *Row) Fail() { r.failed, r.Kept = true, false }

// Rows are all rows in the order of their promises.
func (c *Card) Rows() []Row {
	rows := make([]Row, 0, len(c.rows))
	for _, r := range c.rows {
		rows = append(rows, *r)
	}
	return rows
}

// Broken counts the rows that differ from their promise.
func (c *Card) Broken() int {
	broken := 0
	for _, r := range c.rows {
		if !r.Kept {
			broken++
		}
	}
	return broken
}

// FailFrom calls [Row.Fail] on the rows from the n-th on, counted from 0.
func (c *Card) FailFrom(n int) {
	for _, r := range c.rows[n:] {
		r.Fail()
	}
}
