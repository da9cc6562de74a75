package figure

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the figures for people: a line each, and the notes below.
func (r Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := [][]string{{"SCENARIO", "FIGURE", "VALUE", "FLOOR", "RATIO", "BUDGET", "VERDICT"}}
	for _, f := range r.Figures {
		rows = append(rows, r.row(f))
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	for _, f := range r.Figures {
		if f.Note == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s, %s: %s\n", f.Scenario, f.Name, f.Note); err != nil {
			return fmt.Errorf("write the notes: %w", err)
		}
	}
	return nil
}

func (r Report) row(f Figure) []string {
	floor, ratio, budget := "-", "-", "-"
	if f.Floor != 0 {
		floor = f.Unit.amount(f.Floor)
		ratio = fmt.Sprintf("%.2f", f.Ratio())
	}
	if f.Budget != (Budget{}) {
		budget = f.Budget.String()
		if f.Budget.rule != times && f.Unit != Count {
			budget += " " + string(f.Unit)
		}
	}
	return []string{f.Scenario, f.Name, f.Unit.amount(f.Value), floor, ratio, budget, string(f.Judge(r.CountsOnly))}
}

func (u Unit) amount(value float64) string {
	if u == Count {
		return number(value)
	}
	return number(value) + " " + string(u)
}
