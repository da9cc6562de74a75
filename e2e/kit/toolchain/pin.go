package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// pin is what a tool's go.mod says about it.
type pin struct {
	Tool    []struct{ Path string }
	Require []struct{ Path, Version string }
}

// readPin asks the go command, which is the one that knows the format.
func readPin(ctx context.Context, dir string) (pin, error) {
	command := exec.CommandContext(ctx, "go", "mod", "edit", "-json")
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return pin{}, fmt.Errorf("read %s: %w", filepath.Join(dir, "go.mod"), withOutput(err))
	}
	var p pin
	if err := json.Unmarshal(out, &p); err != nil {
		return pin{}, fmt.Errorf("read %s: %w", filepath.Join(dir, "go.mod"), err)
	}
	return p, nil
}

// version is the pinned version of a module, empty when the module is not required.
func (p pin) version(module string) string {
	for _, r := range p.Require {
		if r.Path == module {
			return r.Version
		}
	}
	return ""
}

// linkerFlags make a tool report its true version. Without them the tools of a foreign module say
// "unknown" or claim to be another release.
func (p pin) linkerFlags() string {
	flags := []string{"-s", "-w"}
	set := func(name, value string) { flags = append(flags, "-X", name+"="+value) }
	if v := p.version("k8s.io/kubernetes"); v != "" {
		number := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
		for _, module := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
			set(module+".gitVersion", v)
			set(module+".gitMajor", number[0])
			set(module+".gitMinor", number[1])
			set(module+".gitTreeState", "clean")
		}
	}
	if v := p.version("sigs.k8s.io/kwok"); v != "" {
		set("sigs.k8s.io/kwok/pkg/consts.Version", v)
	}
	for _, helm := range []string{"helm.sh/helm/v3", "helm.sh/helm/v4"} {
		if v := p.version(helm); v != "" {
			set(helm+"/internal/version.version", v)
		}
	}
	if v := p.version("github.com/golangci/golangci-lint/v2"); v != "" {
		set("main.version", v)
	}
	return strings.Join(flags, " ")
}

// packages are what is built: the tools that go.mod names and the mains that the module has itself.
func (p pin) packages(dir string) ([]string, error) {
	packages := make([]string, 0, len(p.Tool)+1)
	for _, t := range p.Tool {
		packages = append(packages, t.Path)
	}
	sources, err := goFiles(dir)
	if err != nil {
		return nil, err
	}
	if len(sources) > 0 {
		packages = append(packages, "./...")
	}
	return packages, nil
}

// fingerprint changes when what would be built changes: the pins, the tool's own sources or the
// platform. A newer Go release alone does not rebuild.
func fingerprint(dir string) (string, error) {
	sources, err := goFiles(dir)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s/%s\n", runtime.GOOS, runtime.GOARCH)
	for _, name := range append([]string{"go.mod", "go.sum"}, sources...) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			return "", fmt.Errorf("read the pin of a tool: %w", err)
		}
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// goFiles are the Go sources below dir, relative to it, in a fixed order.
func goFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the sources of %s: %w", filepath.Base(dir), err)
	}
	slices.Sort(files)
	return files, nil
}
