package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/toolchain"
)

// version is that of the release that is published here.
const version = "1.2.3-test.1"

func TestPublishedImageAndChart(t *testing.T) {
	registry := serveRegistry(t)
	publish(t, registry)
	image := registry + "/pod-reloader:" + version
	t.Run("Configuration", func(t *testing.T) { checkConfiguration(t, image) })
	t.Run("Content", func(t *testing.T) { checkContent(t, image) })
	t.Run("Platforms", func(t *testing.T) { checkPlatforms(t, image) })
	t.Run("Chart", func(t *testing.T) {
		rendered := output(t, tool(t, "helm"), "template", "pod-reloader", "oci://"+registry+"/charts/pod-reloader",
			"--version", version, "--kube-version", "1.36", "--plain-http")
		assert.Contains(t, rendered, registry+"/pod-reloader:"+version, "the chart installs the image that is published with it")
	})
}

// What is no release is refused before anything is built.
func TestPublishRefusesWhatIsNoRelease(t *testing.T) {
	tests := map[string]struct{ reason, version, registry, problem string }{
		"Version":  {"git describe of an untagged commit", "3f2a1bc-dirty", "registry.example.com", "is not the version of a release"},
		"Registry": {"there is no default", "v1.2.3", "", "REGISTRY is empty"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			said, err := run(t, "make", "-C", toolchain.RootOf(t), "publish", "VERSION="+test.version, "REGISTRY="+test.registry, "ENGINE=false")
			require.Error(t, err, test.reason)
			assert.Contains(t, said, test.problem, test.reason)
		})
	}
}

// publish does what a release does, for this platform and with nothing below the program.
func publish(t *testing.T, registry string) {
	t.Helper()
	said, err := run(t, "make", "-C", toolchain.RootOf(t), "publish", "VERSION=v"+version, "REGISTRY="+registry, "ENGINE=buildah",
		"BASE=scratch", "IMAGE_PLATFORMS=linux/"+runtime.GOARCH, "PUSHFLAGS=--tls-verify=false", "HELMFLAGS=--plain-http")
	t.Cleanup(func() {
		_, _ = run(t, "buildah", "rmi", registry+"/pod-reloader:"+version+"-linux-"+runtime.GOARCH)
	})
	require.NoError(t, err, said)
}

func checkConfiguration(t *testing.T, image string) {
	t.Helper()
	var got struct {
		Architecture, OS string
		Config           struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(output(t, tool(t, "crane"), "config", image)), &got))
	assert.Equal(t, "linux/"+runtime.GOARCH, got.OS+"/"+got.Architecture)
	assert.Equal(t, "65532:65532", got.Config.User, "a number other than 0, as runAsNonRoot wants it")
	assert.Equal(t, []string{"/pod-reloader"}, got.Config.Entrypoint)
	labels := got.Config.Labels
	assert.Equal(t, "v"+version, labels["org.opencontainers.image.version"])
	assert.Equal(t, strings.TrimSpace(output(t, "git", "-C", toolchain.RootOf(t), "rev-parse", "HEAD")), labels["org.opencontainers.image.revision"])
	assert.Equal(t, "Apache-2.0", labels["org.opencontainers.image.licenses"])
	assert.Equal(t, "https://github.com/pod-reloader/pod-reloader", labels["org.opencontainers.image.source"])
}

// The image has the released program and nothing else, which runs without anything below it.
func checkContent(t *testing.T, image string) {
	t.Helper()
	export := exec.CommandContext(t.Context(), tool(t, "crane"), "export", image, "-")
	content, err := export.Output()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "pod-reloader")
	archive := tar.NewReader(bytes.NewReader(content))
	var files []string
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if header.Typeflag == tar.TypeReg {
			files = append(files, header.Name)
			text, err := io.ReadAll(archive)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(program, text, header.FileInfo().Mode()))
		}
	}
	require.Equal(t, []string{"pod-reloader"}, files)
	assert.Contains(t, output(t, program, "version"), "pod-reloader v"+version)
	released, err := os.ReadFile(filepath.Join(toolchain.RootOf(t), "dist", "pod-reloader-linux-"+runtime.GOARCH))
	require.NoError(t, err)
	published, err := os.ReadFile(program)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(released, published), "the image has the bytes of the release")
}

// The version is an index, from which a node takes the image for its platform.
func checkPlatforms(t *testing.T, image string) {
	t.Helper()
	var index struct {
		MediaType string
		Manifests []struct {
			Platform struct{ OS, Architecture string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(output(t, tool(t, "crane"), "manifest", image)), &index))
	assert.Contains(t, []string{"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"}, index.MediaType)
	require.Len(t, index.Manifests, 1)
	assert.Equal(t, "linux/"+runtime.GOARCH, index.Manifests[0].Platform.OS+"/"+index.Manifests[0].Platform.Architecture)
}
