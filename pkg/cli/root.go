package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pod-reloader/pod-reloader/pkg/app"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// commands are the sub-commands, in the order of the help text. A new tool is one more line.
func commands(p Process) []*cobra.Command {
	return []*cobra.Command{
		newWhy(p),
		newGraph(p),
		newPlan(p),
		newRoles(p),
		newClean(p),
		newCheck(p),
		newVersion(p),
	}
}

// newRoot returns the command that runs the manager, with the tools below it. It parses its flags itself, so that all
// that is wrong is reported at once.
func newRoot(p Process) *cobra.Command {
	flags := options.NewFlags()
	root := &cobra.Command{
		Use:                "pod-reloader [flags]",
		Short:              "Restart workloads when their configuration changes",
		Args:               cobra.ArbitraryArgs,
		DisableFlagParsing: true,
		SilenceErrors:      true,
		SilenceUsage:       true,
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},

		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, args []string) error { return runManager(cmd, args, p, flags) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())}
	})
	root.SetUsageFunc(printUsage)
	for _, command := range commands(p) {
		command.Args = usage(command.Args)
		root.AddCommand(command)
	}
	root.SetHelpCommand(newHelp(root))
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd == root {
			printHelp(cmd.OutOrStdout(), root, flags)
			return
		}
		help(cmd, args)
	})
	return root
}

// runManager is what the program does without a sub-command.
func runManager(cmd *cobra.Command, args []string, p Process, flags *options.Flags) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return usageError{unknownCommand(cmd, args[0])}
	}
	if len(args) == 1 && args[0] == "--version" {
		return p.printVersion(cmd.OutOrStdout())
	}
	parsed := flags.Parse(args)
	if errors.Is(parsed, pflag.ErrHelp) {
		return cmd.Help()
	}
	environment := options.OSEnvironment()
	environment.ContextNamespace = app.ContextNamespace
	o, invalid := flags.Complete(environment)
	if err := errors.Join(parsed, invalid); err != nil {
		return usageError{err}
	}
	limitMemory(o.MemoryLimit, p.Getenv)
	log := o.Logging.Logger(cmd.ErrOrStderr())
	for _, warning := range flags.Warnings(environment) {
		log.Error(warning, "a setting has an unknown value; using its default")
	}
	return app.Run(cmd.Context(), app.Host{}, o, p.readBuild().Version, log)
}

// gcPercent is GOGC where the environment has none. Otherwise garbage is a third of the memory that is not the executable. The
// garbage collector takes more processor time for it: little, except while a replica lists the objects of a large cluster.
const gcPercent = 50

// limitMemory keeps the resident memory of the process small.
func limitMemory(limit int64, getenv func(string) string) {
	if limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// helpWidth is how many columns the flags have in help texts.
const helpWidth = 110

const intro = `pod-reloader restarts exactly the workloads whose running pods no longer match their configuration.

A workload asks for it by annotations that name ConfigMaps and Secrets of its namespace:

  metadata:
    annotations:
      %[1]sconfigmaps: app-config
      %[1]ssecrets: db-password, tls

Without a command it runs the manager: an admission webhook that stamps pod templates with a digest
of the configuration, and a loop that requests a new stamp when the digest is stale.

Usage:
  pod-reloader [flags]
  pod-reloader COMMAND [flags]

Commands:
`

// printHelp prints the flags by what they are about, the ones that most installations set first.
func printHelp(w io.Writer, root *cobra.Command, flags *options.Flags) {
	prefix := flags.All().Lookup("annotation-prefix").DefValue
	fmt.Fprintf(w, intro, prefix)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(w, "  %-10s %s\n", c.Name(), c.Short)
		}
	}
	for _, g := range flags.Groups() {
		fmt.Fprintf(w, "\n%s:\n%s", g.Title, strings.TrimRight(g.Set.FlagUsagesWrapped(helpWidth), "\n")+"\n")
	}
	fmt.Fprint(w, "\nEnvironment variables:\n")
	for _, v := range options.Variables() {
		fmt.Fprintf(w, "  %-28s %s\n", v.Name, v.Usage)
	}
	fmt.Fprint(w, "\n\"pod-reloader COMMAND --help\" explains a command, \"pod-reloader --version\" prints the version.\n")
}

// printUsage prints how a sub-command is called, with lines of limited length. A template of cobra's would do that, too, but makes the
// linker keep each exported method of the program: 10 MB.
func printUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	own, installation := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if ofInstallation(cmd, flag) {
			installation.AddFlag(flag)
		} else {
			own.AddFlag(flag)
		}
	})
	printFlags(w, "Flags", own)
	printFlags(w, "Flags of the installation, which are taken from its Deployment; those of the command line take precedence", installation)
	return nil
}

func printFlags(w io.Writer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s:\n%s\n", title, strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), "\n"))
	}
}

// newHelp returns the sub-command that prints the help of another one.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Explain a command",
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			command, _, err := root.Find(args)
			if err != nil || command == root {
				return usageError{unknownCommand(root, args[0])}
			}
			return command.Help()
		},
	}
}

// unknownCommand names the command that was probably meant.
func unknownCommand(root *cobra.Command, name string) error {
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("%q is no command; did you mean %s?", name, strings.Join(near, " or "))
	}
	return fmt.Errorf("%q is no command; --help lists them", name)
}
