// Package figure holds what a benchmark found, against what was promised: numbers with their floors and budgets, the
// verdict on each, and the table and JSON in which they are reported. It measures nothing.
package figure

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Verdict is what a budget says about a figure.
type Verdict string

const (
	// OK means that the figure is within its budget.
	OK Verdict = "ok"
	// Over means that it is not.
	Over Verdict = "over"
	// Unjudged means that there is no budget, or that it does not hold for this run.
	Unjudged Verdict = "-"
)

// Unit is what a figure counts.
type Unit string

const (
	// Count is a number of events. Counts do not depend on the machine, so that their budgets always hold.
	Count Unit = ""
	// Milliseconds are for durations of single writes.
	Milliseconds Unit = "ms"
	// Seconds are for durations of more than that.
	Seconds Unit = "s"
	// Megabytes are 10^6 bytes.
	Megabytes Unit = "MB"
	// Nanoseconds are for single steps of a program.
	Nanoseconds Unit = "ns"
	// Bytes are for single objects.
	Bytes Unit = "B"
	// PerSecond is a rate of events. It depends on the machine, as durations do.
	PerSecond Unit = "/s"
)

// Budget is a limit; the zero value is none.
type Budget struct {
	limit float64
	rule  string
}

const (
	atMost  = "<="
	atLeast = ">="
	exactly = "="
	times   = "x floor"
)

// AtMost limits the figure itself.
func AtMost(limit float64) Budget { return Budget{limit, atMost} }

// AtLeast is for rates.
func AtLeast(limit float64) Budget { return Budget{limit, atLeast} }

// Exactly is for counts that have one right value.
func Exactly(value float64) Budget { return Budget{value, exactly} }

// Times limits the figure as a multiple of its floor.
func Times(limit float64) Budget { return Budget{limit, times} }

// String is like "<= 45", "= 0" or "<= 1.2 x floor".
func (b Budget) String() string {
	switch b.rule {
	case "":
		return ""
	case times:
		return atMost + " " + exact(b.limit) + " " + times
	default:
		return b.rule + " " + exact(b.limit)
	}
}

// Figure is one number that was found.
type Figure struct {
	// Scenario is where it comes from, Name what it is.
	Scenario, Name string
	Unit           Unit
	Value          float64
	// Floor is what the least that does the job needs, measured in the same run; 0 means that there is none.
	Floor  float64
	Budget Budget
	// Note explains the number.
	Note string
}

// Ratio is the figure as a multiple of its floor; 0 without a floor.
func (f Figure) Ratio() float64 {
	if f.Floor == 0 {
		return 0
	}
	return f.Value / f.Floor
}

// Judge holds the figure against its budget. With countsOnly those of durations and memory do not hold: for runs that
// are too short, or on machines too busy, for their measurements to mean something.
func (f Figure) Judge(countsOnly bool) Verdict {
	if countsOnly && f.Unit != Count {
		return Unjudged
	}
	within := false
	switch f.Budget.rule {
	case "":
		return Unjudged
	case atMost:
		within = f.Value <= f.Budget.limit
	case atLeast:
		within = f.Value >= f.Budget.limit
	case exactly:
		within = f.Value == f.Budget.limit
	case times:
		within = f.Floor > 0 && f.Ratio() <= f.Budget.limit
	}
	if within {
		return OK
	}
	return Over
}

// Report is all that a run found.
type Report struct {
	Figures []Figure
	// CountsOnly says that only counts are judged, see [Figure.Judge].
	CountsOnly bool
}

// Over are the figures that are over their budgets.
func (r Report) Over() []Figure {
	var over []Figure
	for _, f := range r.Figures {
		if f.Judge(r.CountsOnly) == Over {
			over = append(over, f)
		}
	}
	return over
}

// WriteJSON writes the figures as a JSON array, for machines.
func (r Report) WriteJSON(w io.Writer) error {
	type row struct {
		Scenario string  `json:"scenario"`
		Figure   string  `json:"figure"`
		Unit     Unit    `json:"unit,omitempty"`
		Value    float64 `json:"value"`
		Floor    float64 `json:"floor,omitempty"`
		Ratio    float64 `json:"ratio,omitempty"`
		Budget   string  `json:"budget,omitempty"`
		Verdict  Verdict `json:"verdict"`
		Note     string  `json:"note,omitempty"`
	}
	rows := make([]row, 0, len(r.Figures))
	for _, f := range r.Figures {
		rows = append(rows, row{
			Scenario: f.Scenario, Figure: f.Name, Unit: f.Unit, Value: f.Value, Floor: f.Floor, Ratio: f.Ratio(),
			Budget: f.Budget.String(), Verdict: f.Judge(r.CountsOnly), Note: f.Note,
		})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(rows); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}

// number writes as few digits as say something.
func number(value float64) string {
	switch {
	case value == float64(int64(value)):
		return strconv.FormatInt(int64(value), 10)
	case value >= 100:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case value >= 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	default:
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
}

// exact writes a limit without rounding.
func exact(limit float64) string { return strconv.FormatFloat(limit, 'g', -1, 64) }
