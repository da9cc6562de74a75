package scorecard

import (
	"strings"
	"unicode/utf8"
)

// Style decorates parts of the table. A nil function leaves its part as it is.
type Style struct {
	Head, Kept, Broken func(string) string
}

// The marks of a row.
const (
	kept   = "✓"
	broken = "✗"
)

// gap is the space between columns.
const gap = "   "

// Table renders rows in aligned columns, a line each, with a heading.
func Table(rows []Row, style Style) string {
	cells := [][3]string{{"WHAT HAPPENS", "PROMISED", "OBSERVED"}}
	for _, r := range rows {
		cells = append(cells, [3]string{r.Act, r.Promised, r.Observed})
	}
	var widths [3]int
	for _, line := range cells {
		for n, cell := range line {
			widths[n] = max(widths[n], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, line := range cells {
		text := pad(line[0], widths[0]) + gap + pad(line[1], widths[1]) + gap
		if n == 0 {
			b.WriteString(apply(style.Head, text+line[2]) + "\n")
			continue
		}
		mark, decorate := kept, style.Kept
		if !rows[n-1].Kept {
			mark, decorate = broken, style.Broken
		}
		b.WriteString(text + pad(line[2], widths[2]) + gap + apply(decorate, mark) + "\n")
	}
	return b.String()
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func apply(decorate func(string) string, text string) string {
	if decorate == nil {
		return text
	}
	return decorate(text)
}
