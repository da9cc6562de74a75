package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tail is the end of a log, for an error that must be understood without the file.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return fmt.Sprintf("--- end of %s:\n%s\n---", filepath.Base(path), strings.Join(all, "\n"))
}
