package webhook

import (
	"strings"
	"unicode/utf8"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Once all warnings of a response have more than 4,096 characters, those of other webhooks included, the API server cuts each to maxWarning.
// Ours are shortened from half of that on.
const (
	maxWarning  = 256
	maxWarnings = 2048
)

// keptEnd is how many characters of the end of a long warning are kept: the longest text that says what to do has some more than 130.
const keptEnd = 140

// limitWarnings makes warnings fit for the headers in which they travel: each on one line, and together not too long. Only where they are,
// long ones are shortened, and what is still too much is counted.
func limitWarnings(warnings []string) []string {
	var lines, kept []string
	for _, w := range warnings {
		lines = append(lines, reference.OneLine(w))
	}
	if utf8.RuneCountInString(strings.Join(lines, "")) <= maxWarnings {
		return lines
	}
	left := maxWarnings
	for i, w := range lines {
		w = shorten(w)
		if left -= utf8.RuneCountInString(w); left < 0 {
			return append(kept, "pod-reloader: "+reference.Count(len(lines)-i, "more warning"))
		}
		kept = append(kept, w)
	}
	return kept
}

// shorten returns a warning with at most maxWarning characters. A longer one loses a part of its middle, where a long cause or list is: it
// says at last what to do.
func shorten(s string) string {
	if runes := []rune(s); len(runes) > maxWarning {
		return string(runes[:maxWarning-keptEnd-1]) + "…" + string(runes[len(runes)-keptEnd:])
	}
	return s
}
