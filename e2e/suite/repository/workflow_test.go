package repository

import (
	"go/version"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var (
	pinnedAction = regexp.MustCompile(`uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	makeStep     = regexp.MustCompile(`(?m)^make ([a-z-]+)`)
)

// workflow is the part of a workflow that is checked.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Steps []struct{ Uses, Run string }
	}
}

// The hosted CI adds nothing to what a contributor can run.
func TestWorkflowsRunTargetsThatExist(t *testing.T) {
	t.Parallel()
	existing, runs := targets(t), map[string]bool{}
	for name, w := range workflows(t) {
		assert.NotEmpty(t, w.Permissions, "%s: the default permissions of a token are too many", name)
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				runs[step.Run] = true
				for _, match := range makeStep.FindAllStringSubmatch(step.Run, -1) {
					assert.Contains(t, existing, match[1], "%s runs make %s", name, match[1])
				}
			}
		}
	}
	for _, step := range []string{".ci/run", "make release-check", "make test-oldest", "make verify-build", "make vulncheck", "make publish"} {
		assert.Contains(t, runs, step)
	}
}

// A tag whose commit is not that of the release is refused before anything is built.
func TestReleaseBeginsWithItsCheck(t *testing.T) {
	t.Parallel()
	for _, step := range workflows(t)[".github/workflows/release.yaml"].Jobs["release"].Steps {
		if step.Run != "" {
			assert.Equal(t, "make release-check", step.Run)
			return
		}
	}
	t.Fatal("the workflow runs nothing")
}

// The owner of an action can move a tag, but not a commit.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	checked := 0
	for name := range workflows(t) {
		for line := range strings.SplitSeq(read(t, name), "\n") {
			if strings.Contains(line, "uses:") {
				checked++
				assert.Regexp(t, pinnedAction, line, name)
			}
		}
	}
	require.NotZero(t, checked)
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	found := map[string]workflow{}
	for _, file := range trackedFiles(t) {
		if filepath.Dir(file) == ".github/workflows" {
			var w workflow
			require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &w), file)
			found[file] = w
		}
	}
	require.NotEmpty(t, found)
	return found
}

// The page about releases names what the suites run on.
func TestSupportedVersionsAreTested(t *testing.T) {
	t.Parallel()
	page, makefile := read(t, "docs/releasing.md"), read(t, "Makefile")
	oldest := regexp.MustCompile(`(?m)^K8S_OLDEST \?= (.+)$`).FindStringSubmatch(makefile)
	newest := regexp.MustCompile(`(?m)^K8S_VERSION \?= (.+)$`).FindStringSubmatch(makefile)
	require.NotNil(t, oldest)
	require.NotNil(t, newest)
	assert.Contains(t, page, "| Kubernetes | "+oldest[1]+" to "+newest[1]+":")
	certManager := regexp.MustCompile(`cert-manager/cert-manager v(\d+\.\d+)\.`).FindStringSubmatch(read(t, "e2e/tools/cert-manager/go.mod"))
	require.NotNil(t, certManager)
	assert.Contains(t, page, "| cert-manager | "+certManager[1]+" is tested.")
	var helm []string
	for _, tool := range []string{"helm", "helm4"} {
		pinned := regexp.MustCompile(`helm\.sh/helm/v\d v(\d+\.\d+)\.`).FindStringSubmatch(read(t, "e2e/tools/"+tool+"/go.mod"))
		require.NotNil(t, pinned)
		helm = append(helm, pinned[1])
	}
	assert.Contains(t, page, "| Helm | 3.14 or newer, and 4: "+strings.Join(helm, " and ")+" are tested.")
}

// The tools need a newer Go than the program.
func TestGoOfTheToolsIsDocumented(t *testing.T) {
	t.Parallel()
	directive := regexp.MustCompile(`(?m)^go (\d+\.\d+\.\d+)$`)
	newest := ""
	for _, file := range trackedFiles(t) {
		if match, _ := filepath.Match("e2e/tools/*/go.mod", file); !match {
			continue
		}
		needed := directive.FindStringSubmatch(read(t, file))
		require.NotNil(t, needed, file)
		if version.Compare("go"+needed[1], newest) > 0 {
			newest = "go" + needed[1]
		}
	}
	assert.Contains(t, read(t, "CONTRIBUTING.md"), "the tools need Go "+strings.TrimPrefix(newest, "go")+":")
}

// The version that is being prepared is the same wherever it is written.
func TestVersionIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	var chart struct{ Version, AppVersion string }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "chart/pod-reloader/Chart.yaml")), &chart))
	assert.Equal(t, chart.Version, chart.AppVersion)
	assert.Contains(t, read(t, "manifests/base/deployment.yaml"), "image: pod-reloader:"+chart.Version+"\n")
	assert.Contains(t, read(t, "Makefile"), "\nIMAGE ?= pod-reloader:"+chart.Version+"\n")
	named := regexp.MustCompile(`(?:pod-reloader[:-]|(?:[tT]ag|targetRevision): )(\d+\.\d+\.\d+)`)
	for _, file := range []string{
		"README.md", "docs/installing.md", "docs/configuration.md", "chart/pod-reloader/ci/hardened-values.yaml", "e2e/suite/docs/run_test.go",
	} {
		found := named.FindAllStringSubmatch(read(t, file), -1)
		assert.NotEmpty(t, found, file)
		for _, version := range found {
			assert.Equal(t, chart.Version, version[1], "%s: %s", file, version[0])
		}
	}
}
