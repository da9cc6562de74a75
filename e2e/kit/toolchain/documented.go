package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Documented returns the text of a YAML file that a page of docs shows: of the block whose first line is a comment with the file's name.
func Documented(page, name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		return "", fmt.Errorf("read a page: %w", err)
	}
	_, after, begins := strings.Cut(string(text), "```yaml\n# "+name+"\n")
	block, _, ends := strings.Cut(after, "```\n")
	if !begins || !ends {
		return "", fmt.Errorf("docs/%s shows no file %s", page, name)
	}
	return block, nil
}
