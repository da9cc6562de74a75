package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildInfo is what `version` prints.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Modified means that the source had changes besides those of the revision.
	Modified  bool   `json:"modified,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// readBuild returns how the program was built.
func (p Process) readBuild() buildInfo {
	info := buildInfo{Version: p.Version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// printVersion writes it for people.
func (p Process) printVersion(w io.Writer) error {
	info := p.readBuild()
	_, err := fmt.Fprintf(w, "pod-reloader %s (%s, %s)\n", info.Version, info.GoVersion, info.Platform)
	return err
}

func newVersion(p Process) *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := output.check(); err != nil {
				return usageError{err}
			}
			return output.write(p.Stdout, p.readBuild(), p.printVersion)
		},
	}
	output.register(cmd, "text", "json")
	return cmd
}
