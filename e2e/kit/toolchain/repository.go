package toolchain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// toolsDir is where the modules of the tools are, relative to the root of the repository.
const toolsDir = "e2e/tools"

// Root finds the root of the repository: the nearest directory at or above the working directory
// that has both a go.mod and the tools' modules. Tests run in the directory of their package, so
// that this works from any of them.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for {
		if exists(filepath.Join(dir, "go.mod")) && exists(filepath.Join(dir, toolsDir)) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no repository here: run this in the repository or a directory below it")
		}
		dir = parent
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
