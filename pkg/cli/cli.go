// Package cli is the command line of pod-reloader: the command that runs the manager, and the tools below it, each in the files whose
// names begin with its own. It reads flags, prints results and chooses the exit code; what the commands do is in the packages that they
// call.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Process is what a command line takes from its process.
type Process struct {
	// Args are the arguments, without the program's name.
	Args []string
	// Stdin answers what a command asks; nil answers nothing.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv returns an environment variable, and an empty string for one that is not set.
	Getenv func(string) string
	// Version is the version that the program was built as. Empty means the one that the Go toolchain has recorded.
	Version string
	// Cluster is what sub-commands ask, with --namespace; nil is the one of the kubeconfig.
	Cluster *rest.Config
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	// exitUsage is for a command line that makes no sense; trying again does not help.
	exitUsage = 2
	// exitDifferent is the answer of a comparison that has found differences.
	exitDifferent = 3
)

// Run executes a command line until ctx ends, and returns the exit code: 0 for success, 1 for a failure, 2 for wrong usage, and
// 3 for differences that a comparison has found.
func Run(ctx context.Context, p Process) int {
	root := newRoot(p) //nolint:contextcheck // cobra hands the context to the commands
	root.SetArgs(p.Args)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if status := exitStatus(0); errors.As(err, &status) {
		return int(status)
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(p.Stderr, "pod-reloader: "+reference.Printable(line))
	}
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// usageError is what is wrong with a command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// exitStatus is the answer of a command that has printed its result: it ends the program without a message.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// warn prints what is wrong with a command line that works all the same.
func warn(p Process, warnings []error) {
	for _, warning := range warnings {
		fmt.Fprintf(p.Stderr, "pod-reloader: warning: %v\n", warning)
	}
}

// leaveOut returns what prints, once for each kind, that a command leaves its workloads out, since the cluster does not serve it.
func leaveOut(p Process) func(workload.Kind) {
	printed := map[string]bool{}
	return func(kind workload.Kind) {
		if !printed[kind.ID()] {
			printed[kind.ID()] = true
			warn(p, []error{fmt.Errorf("%w: its workloads are left out", unserved(kind))})
		}
	}
}

// usage makes wrong arguments of a command a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// noArgs is for commands that take flags only.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// outputFormat is the flag --output.
type outputFormat struct {
	name    string
	formats []string
}

// register adds the flag for some formats, of which the first is the default.
func (o *outputFormat) register(cmd *cobra.Command, formats ...string) {
	o.formats = formats
	cmd.Flags().StringVarP(&o.name, "output", "o", formats[0], "format of the output: `"+strings.Join(formats, "|")+"`")
}

// check returns what is wrong with the flag.
func (o *outputFormat) check() error {
	if !slices.Contains(o.formats, o.name) {
		return fmt.Errorf("--output: %q: want %s", o.name, strings.Join(o.formats, " or "))
	}
	return nil
}

// write writes v as JSON, or calls text.
func (o *outputFormat) write(w io.Writer, v any, text func(io.Writer) error) error {
	if o.name == "text" {
		return text(w)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
