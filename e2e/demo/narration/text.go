package narration

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Seconds is a duration as the demo shows it: milliseconds below a second, else a tenth of a second.
func Seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// After is a distance from the end of a command: what was there before its end is its own doing.
func After(d time.Duration) string {
	if d <= 0 {
		return "at once"
	}
	return "+" + Seconds(d)
}

// Wrap breaks a text between words into lines of at most so many characters; a longer word gets a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// Quote writes an argument vector so that a POSIX shell reads the very same one.
func Quote(argv []string) string {
	quoted := make([]string, 0, len(argv))
	for _, arg := range argv {
		if arg == "" || strings.ContainsFunc(arg, special) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		quoted = append(quoted, arg)
	}
	return strings.Join(quoted, " ")
}

func special(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	default:
		return !strings.ContainsRune("-_./:,=@%+", r)
	}
}
