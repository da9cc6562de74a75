package webhook

import "github.com/pod-reloader/pod-reloader/pkg/reference"

// The API server cuts a warning after so many characters, and drops those beyond the total; other webhooks have theirs.
const (
	maxWarning  = 256
	maxWarnings = 2048
)

// keptEnd is how many characters of the end of a long warning are kept: the longest text that says what to do has some more than 130.
const keptEnd = 140

// limitWarnings makes warnings fit for the headers in which they travel: each on one line and not too long, and not too many.
func limitWarnings(warnings []string) []string {
	var kept []string
	left := maxWarnings
	for i, w := range warnings {
		w = shortLine(w)
		if left -= len([]rune(w)); left < 0 {
			return append(kept, "pod-reloader: "+reference.Count(len(warnings)-i, "more warning"))
		}
		kept = append(kept, w)
	}
	return kept
}

// shortLine returns a warning as one line of at most maxWarning characters. A longer one loses a part of its middle, where a long cause or list
// is: it says at last what to do.
func shortLine(s string) string {
	s = reference.OneLine(s)
	if runes := []rune(s); len(runes) > maxWarning {
		return string(runes[:maxWarning-keptEnd-1]) + "…" + string(runes[len(runes)-keptEnd:])
	}
	return s
}
