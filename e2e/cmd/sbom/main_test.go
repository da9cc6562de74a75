package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test's own executable is a Go program, whose modules go test does not record.
func TestBillOfAProgram(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	var first, second bytes.Buffer
	require.NoError(t, run(program, "v1.2.3", &first))
	require.NoError(t, run(program, "v1.2.3", &second))
	assert.Equal(t, first.String(), second.String(), "the same program has the same bill")

	var got bill
	require.NoError(t, json.Unmarshal(first.Bytes(), &got))
	assert.Equal(t, "CycloneDX", got.Format)
	assert.Equal(t, "pkg:golang/github.com/pod-reloader/pod-reloader@v1.2.3", got.Metadata.Component.PackageURL)
	assert.Equal(t, "v1.2.3", got.Metadata.Component.Version)
	assert.Regexp(t, "^[0-9a-f]{64}$", got.Metadata.Component.Hashes[0].Content)
	require.NotEmpty(t, got.Components)
	assert.Equal(t, "std", got.Components[len(got.Components)-1].Name)
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	of := subject{File: "program", Version: "v1.0.0", SHA256: "00"}
	tests := map[string]struct {
		reason  string
		module  *debug.Module
		url     string
		problem string
	}{
		"Plain": {
			"a module as in go.sum", &debug.Module{Path: "example.org/Lib", Version: "v1.0.0", Sum: "h1:AAEC"},
			"pkg:golang/example.org/lib@v1.0.0", "",
		},
		"Incompatible": {
			"a plus sign has a meaning in a package URL", &debug.Module{Path: "example.org/lib", Version: "v2.0.0+incompatible", Sum: "h1:AAEC"},
			"pkg:golang/example.org/lib@v2.0.0%2Bincompatible", "",
		},
		"Replaced": {
			"what is linked is the replacement", &debug.Module{
				Path: "example.org/lib", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1", Sum: "h1:AAEC"},
			},
			"pkg:golang/example.org/fork@v1.0.1", "",
		},
		"UnknownSum":   {"a bill without a checksum is no proof", &debug.Module{Path: "example.org/lib", Sum: "h9:AAEC"}, "", "of an unknown kind"},
		"MalformedSum": {"not base64", &debug.Module{Path: "example.org/lib", Sum: "h1:?"}, "", "decode the checksum"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := describe(&debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{test.module}}, of)
			if test.problem != "" {
				require.ErrorContains(t, err, test.problem, test.reason)
				return
			}
			require.NoError(t, err, test.reason)
			assert.Equal(t, []string{test.url, "pkg:golang/std@1.26.0"}, got.Dependencies[0].DependsOn, test.reason)
			assert.Equal(t, []hash{{"SHA-256", "000102"}}, got.Components[0].Hashes, test.reason)
		})
	}
}

func TestRunFailsWithoutBuildInformation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.ErrorContains(t, run(file, "v1.0.0", &bytes.Buffer{}), "read the build information")
}
