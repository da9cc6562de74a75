package poll

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// notes is the environment variable with the name of the file that Note appends to.
const notes = "POD_RELOADER_TEST_NOTES"

// longest is how many bytes of a note are in its line. The log of the test has all of it.
const longest = 1000

// Note reports what the log of a run must show although the test passes. It goes to the log of the test and, in one line with the
// test's name, to standard error. go test discards both where a package passes, so the line is also appended to the file that
// POD_RELOADER_TEST_NOTES names: make test prints that at its end.
func Note(t testing.TB, text string) {
	t.Helper()
	t.Log(text)
	if err := note(os.Stderr, os.Getenv(notes), t.Name(), text); err != nil {
		t.Log("note:", err)
	}
}

func note(out io.Writer, file, test, text string) error {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + " …"
	}
	line := test + ": " + text + "\n"
	if _, err := io.WriteString(out, line); err != nil {
		return fmt.Errorf("write a note: %w", err)
	}
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep a note: %w", err)
	}
	_, err = io.WriteString(f, line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
