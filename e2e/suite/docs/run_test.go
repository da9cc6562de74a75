package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// notRunHere lists the blocks that carry <!-- not run: … -->, by page and first line: everything else is run.
var notRunHere = map[string]string{
	"README.md: git clone https://github.com/pod-reloader/pod-reloader && cd pod-reloader": "clones what is being tested",
	"README.md: make demo":  "the demo has tests of its own",
	"README.md: make image": "needs a container engine and a local cluster",
	"docs/installing.md: make image IMAGE=registry.example.com/pod-reloader:0.1.0":           "needs a container engine and a registry",
	"docs/installing.md: make image":                                                         "needs a container engine and a local cluster",
	"docs/installing.md: helm test pod-reloader --namespace pod-reloader":                    "needs a kubelet",
	"docs/installing.md: helm push pod-reloader-0.1.0.tgz oci://registry.example.com/charts": "needs a registry",

	"docs/installing.md: # argo-cd/application.yaml": "needs Argo CD; a test renders the chart with its values",
	"docs/installing.md: # flux/release.yaml":        "needs Flux; a test renders the chart with its values",

	"docs/releasing.md: GOTOOLCHAIN=go1.26.8 make release VERSION=v1.2.3": "e2e/suite/repository runs it on a copy of the repository",
	"docs/releasing.md: make release-check VERSION=v1.2.3":                "make image-check publishes to a registry on this machine",

	"docs/upgrading.md: kubectl apply -k mine": "docs/installing.md installs in both ways",
	"docs/upgrading.md: helm upgrade pod-reloader oci://registry.example.com/charts/pod-reloader --version 1.2.3 -n pod-reloader --reset-then-reuse-values --wait": "docs/installing.md installs in both ways",

	"docs/runbook.md: kubectl delete mutatingwebhookconfiguration pod-reloader; kubectl scale deployment pod-reloader -n pod-reloader --replicas 0": "docs/installing.md runs it, in a cluster of its own",
	"docs/runbook.md: kubectl patch application pod-reloader -n argocd --type merge -p '{\"spec\":{\"syncPolicy\":{\"automated\":null}}}'":          "needs Argo CD",
	"docs/runbook.md: kubectl patch helmrelease pod-reloader -n pod-reloader --type merge -p '{\"spec\":{\"suspend\":true}}'":                       "needs Flux",
	"docs/runbook.md: kubectl patch kustomization pod-reloader -n flux-system --type merge -p '{\"spec\":{\"suspend\":true}}'":                      "needs Flux",

	"docs/certificates.md: kubectl patch secret pod-reloader-certificates -n pod-reloader --type json -p '[{\"op\":\"remove\",\"path\":\"/data/ca.key\"}]'": "needs self-managed certificates",
	"docs/certificates.md: kubectl scale deployment pod-reloader -n pod-reloader --replicas 0":                                                              "needs self-managed certificates",

	"docs/troubleshooting.md: kubectl -n pod-reloader exec deploy/pod-reloader -- /pod-reloader why deployment/cart -n shop": "needs a kubelet",
	"docs/monitoring.md: kubectl -n pod-reloader port-forward deployment/pod-reloader 8080 &":                                "needs a kubelet",
}

// patience bounds one block; compiling one with a Go program, whose packages may not be compiled yet; lastWords the
// wait for output after a block has ended.
const (
	patience  = 5 * time.Minute
	compiling = 20 * time.Minute
	lastWords = 30 * time.Second
)

// installing is the page that installs pod-reloader itself, so it gets a cluster without it.
const installing = "docs/installing.md"

// configuration is the page that has Rollouts as its example.
const configuration = "docs/configuration.md"

// customResources is the page that has the resources of Kroxylicious as its example, and another configuration.
const customResources = "docs/custom-resources.md"

// Each page is one story from its first block to its last, in a namespace of its own.
func TestEveryBlockOfThePagesWorks(t *testing.T) {
	for _, p := range pages(t) {
		t.Run(strings.TrimSuffix(filepath.Base(p.name), ".md"), func(t *testing.T) {
			t.Parallel()
			cp := shared.ControlPlane()
			switch p.name {
			case installing:
				cp = controlplane.New(t, controlplane.Options{})
				define(t, cp, "cert-manager.yaml")
			case configuration:
				define(t, cp, "rollouts.yaml")
			case customResources:
				cp = controlplane.New(t, controlplane.Options{})
				installation.New(t, cp, installation.Options{
					KeepRunning: true, Patient: true, LongLease: true, Args: []string{"--config=configmap:pod-reloader/pod-reloader"},
				})
				define(t, cp, "kroxylicious.yaml")
				define(t, cp, "cert-manager.yaml")
			}
			r := newReader(t, cp)
			for _, b := range p.blocks {
				if b.reason == "" && !t.Failed() {
					r.follow(t, b)
				}
			}
		})
	}
}

// Whatever is not run says why, and this test knows of it.
func TestBlocksThatAreNotRunAreKnown(t *testing.T) {
	found := map[string]bool{}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.reason != "" {
				first, _, _ := strings.Cut(b.text, "\n")
				found[p.name+": "+first] = true
				assert.Equal(t, notRunHere[p.name+": "+first], b.reason, "%s line %d", p.name, b.line)
			}
		}
	}
	for known := range notRunHere {
		assert.Contains(t, found, known, "no block needs this exception any more")
	}
}

// reader does what a page says: in a clone, as an administrator, with the programs that the page takes for granted.
type reader struct {
	dir         string
	version     string
	environment []string
}

func newReader(t *testing.T, cp *controlplane.ControlPlane) *reader {
	t.Helper()
	r := &reader{dir: t.TempDir(), version: cp.Version()}
	for _, part := range []string{"manifests", "chart"} {
		require.NoError(t, os.CopyFS(filepath.Join(r.dir, part), os.DirFS(filepath.Join(toolchain.RootOf(t), part))))
	}
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	content, err := os.ReadFile(cp.AdminKubeconfig())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kubeconfig, content, 0o600))
	path := []string{filepath.Dir(shared.Executable()), tool(t, "kubernetes-"+cp.Version()), tool(t, "helm"), os.Getenv("PATH")}
	r.environment = append(append(os.Environ(), "PATH="+strings.Join(path, string(os.PathListSeparator)),
		"KUBECACHEDIR="+filepath.Join(home, "cache"), "KUBERC=off"), toolchain.Helm(home, kubeconfig)...)
	return r
}

// tool is the directory of a pinned tool.
func tool(t *testing.T, name string) string {
	t.Helper()
	dir, err := toolchain.Builder{}.Build(t.Context(), name)
	require.NoError(t, err)
	return dir
}

// follow does what one block says and compares with what the block says comes of it.
func (r *reader) follow(t *testing.T, b block) {
	t.Helper()
	where := fmt.Sprintf("%s line %d", b.page, b.line)
	started := time.Now()
	switch b.language {
	case "sh":
		require.NoError(t, compare(b.expected, r.bash(t, r.dir, b.text)), where)
	case "go":
		file, program := filepath.Join(t.TempDir(), "main.go"), filepath.Join(r.dir, "program")
		require.NoError(t, os.WriteFile(file, []byte(b.text), 0o600))
		build := "go vet " + file + " && go build -o " + program + " " + file
		require.NoError(t, compare(b.expected, r.within(t, compiling, toolchain.RootOf(t), build+" && "+program)), where)
	case "yaml":
		r.judge(t, where, b.text)
	case "text", "mermaid":
	default:
		require.Fail(t, where, "unknown kind of block %q: use sh, go, yaml, text or mermaid", b.language)
	}
	t.Logf("%s: %s", where, time.Since(started).Round(time.Millisecond))
}

// result is what became of a command.
type result struct {
	output string
	err    error
}

func (r *reader) bash(t *testing.T, dir, script string) result {
	t.Helper()
	return r.within(t, patience, dir, script)
}

func (r *reader) within(t *testing.T, limit time.Duration, dir, script string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env, command.WaitDelay = dir, r.environment, lastWords
	output, err := command.CombinedOutput()
	return result{string(output), err}
}

// compare looks for the expected texts in the output, in their order. A block of which one is a failure must fail.
func compare(all []expectation, got result) error {
	fails := false
	rest := got.output
	for _, e := range all {
		fails = fails || e.fails
		_, after, found := strings.Cut(rest, e.text)
		if !found {
			return errors.Join(fmt.Errorf("%q is expected, but this is printed:\n%s", e.text, got.output), got.err)
		}
		rest = after
	}
	switch {
	case fails && got.err == nil:
		return fmt.Errorf("it is meant to fail, but prints:\n%s", got.output)
	case !fails && got.err != nil:
		return fmt.Errorf("%w:\n%s", got.err, got.output)
	default:
		return nil
	}
}

// fileName is the first line of a block that shows a file.
var fileName = regexp.MustCompile(`^# ([\w./-]+\.yaml)\n`)

// judge stores a block that shows a file, and checks it with the program that reads it.
func (r *reader) judge(t *testing.T, where, text string) {
	t.Helper()
	name := "unnamed.yaml"
	if match := fileName.FindStringSubmatch(text); match != nil {
		name = match[1]
	}
	file := filepath.Join(r.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	script := "kubectl apply --dry-run=server -f " + name
	switch filepath.Base(name) {
	case "kustomization.yaml":
		script = "kubectl kustomize " + filepath.Dir(name)
	case "values.yaml":
		script = "helm template pod-reloader chart/pod-reloader --namespace pod-reloader --kube-version " + r.version + " -f " + name
	}
	got := r.bash(t, r.dir, script)
	require.NoError(t, got.err, "%s:\n%s", where, got.output)
}

// define makes kinds of other programs known, which a page takes for granted.
func define(t *testing.T, cp *controlplane.ControlPlane, file string) {
	t.Helper()
	definitions, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	require.NoError(t, cp.Apply(t.Context(), string(definitions)))
}
