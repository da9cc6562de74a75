package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=…).
var version string

// buildInfo is what `version` tells.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Modified tells that the source had changes besides those of the revision.
	Modified  bool   `json:"modified,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

func readBuildInfo() buildInfo {
	info := buildInfo{Version: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		info.Version = cmp.Or(info.Version, "unknown")
		return info
	}
	info.Version = cmp.Or(info.Version, build.Main.Version, "unknown")
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Revision = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}

func buildVersion() string { return readBuildInfo().Version }

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print which version this is",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := readBuildInfo()
			switch output {
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(info)
			case "text":
				fmt.Fprintf(cmd.OutOrStdout(), "pod-reloader %s (%s, %s)\n", info.Version, info.GoVersion, info.Platform)
				return nil
			default:
				return usageError{fmt.Errorf("--output: %q: want text or json", output)}
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`text|json`")
	return cmd
}

// noArgs is for commands that take flags only.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}
