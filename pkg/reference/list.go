package reference

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// MaxNamed is how many objects or changes an Event, a log line or an audit annotation names.
const MaxNamed = 8

// List joins items for a message, and counts those beyond most: "configmap/a, configmap/b and 3 more".
func List[T fmt.Stringer](items []T, most int) string {
	names := make([]string, 0, min(len(items), most))
	for _, item := range items[:min(len(items), most)] {
		names = append(names, item.String())
	}
	text := strings.Join(names, ", ")
	if more := len(items) - len(names); more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

// Clauses joins texts that may contain commas, and counts those beyond most: "a, b; c; and 3 more".
func Clauses[T any](items []T, most int, text func(T) string) string {
	clauses := make([]string, 0, min(len(items), most)+1)
	for _, item := range items[:min(len(items), most)] {
		clauses = append(clauses, text(item))
	}
	if more := len(items) - len(clauses); more > 0 {
		clauses = append(clauses, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(clauses, "; ")
}

// Count returns how many of something there are: "1 item", "2 items".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// CountAre is Count with the verb that belongs to it: "1 item is", "2 items are".
func CountAre(n int, noun string) string {
	if n == 1 {
		return Count(n, noun) + " is"
	}
	return Count(n, noun) + " are"
}

// Printable returns a text in which a replacement character stands for each character that could control a terminal, line breaks included:
// many texts are those of other programs.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// OneLine is Printable for a text of several lines, such as that of joined errors: "a; b".
func OneLine(text string) string { return Printable(strings.ReplaceAll(text, "\n", "; ")) }
