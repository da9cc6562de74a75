// Package operator runs operators of others on a control plane, with the CustomResourceDefinitions that their pinned modules have.
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// Source is where definitions are.
type Source struct {
	// Pin is the directory, from e2e on, whose go.mod pins the module.
	Pin, Module string
	// Paths are files and directories of the module.
	Paths []string
}

// Apply applies the definitions and waits until the API server serves them.
func (s Source) Apply(ctx context.Context, cp *controlplane.ControlPlane) error {
	dir, err := s.dir(ctx)
	if err != nil {
		return err
	}
	var files []string
	for _, path := range s.Paths {
		files = append(files, "-f", filepath.Join(dir, path))
	}
	if _, err := cp.Kubectl(ctx, append([]string{"apply", "--server-side"}, files...)...); err != nil {
		return err
	}
	return cp.AwaitServed(ctx)
}

// dir is the directory of the module in the module cache.
func (s Source) dir(ctx context.Context) (string, error) {
	root, err := toolchain.Root()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", s.Module)
	command.Dir = filepath.Join(root, "e2e", s.Pin)
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w: %s", s.Module, err, output)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return "", fmt.Errorf("find the module %s: %w", s.Module, err)
	}
	return found.Dir, nil
}
