package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// cleanFlags are those of the sub-command clean.
type cleanFlags struct {
	shared
	selected
	dryRun, yes, withoutRestarts bool
	in                           io.Reader
	out                          io.Writer
}

// newClean returns the sub-command that takes away what reloads have left on workloads. It needs the permissions to list, get
// and patch them.
func newClean(p Process) *cobra.Command {
	return (&cleanFlags{shared: newShared(p), in: p.Stdin, out: p.Stdout}).command(p)
}

func (f *cleanFlags) command(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clean [KIND/NAME]...",
		Short: "Remove what pod-reloader or Stakater's Reloader has written on workloads",
		Long: `Remove what pod-reloader or Stakater's Reloader has written on workloads.

It lists what it finds and whose pods restart, and asks. Removing something from a pod template restarts the pods; the
annotations of the workload itself do not. What is on the pod template of a workload with a controller stays. Each
workload first gets the label disabled, so that pod-reloader leaves it alone from then on; the label stays. Your own
annotations stay, too, and so does the pause of a Deployment that a reload has paused: end it with kubectl rollout resume.

It uses your permissions: get and patch on the workloads; with --all, list on every kind of workload that is handled and, if it
finds no workload, get on the Namespace; get on the ConfigMap of --config; and get on the Deployment of the installation, whose flags
it takes over. It fails if the Namespace does not exist.`,
		Example: `  pod-reloader clean deployment/cart -n shop --dry-run
  pod-reloader clean --all --all-namespaces --without-restarts --yes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, config, err := f.completed(cmd.Context(), p, args)
			if err != nil {
				return err
			}
			warn(p, f.unknown)
			return f.run(cmd.Context(), p, config, asked)
		},
	}
	flags := cmd.Flags()
	f.cluster.register(cmd, "workloads")
	f.registerSelected(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "list what would be removed, and change nothing")
	flags.BoolVar(&f.withoutRestarts, "without-restarts", false, "leave the pod templates as they are")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	f.registerInstallation(cmd)
	f.manager.Share(flags, "workload-kinds", "is-Argo-Rollouts", "is-openshift", "config", "annotation-prefix")
	return cmd
}

// completed reads a command line together with the flags of the installation.
func (f *cleanFlags) completed(ctx context.Context, p Process, args []string) (asked cleaning, config *rest.Config, err error) {
	config, err = f.complete(ctx, p, func() (missing, err error) {
		asked, missing, err = f.parse(args)
		return missing, err
	})
	return asked, config, err
}

// cleaning is a valid command line: which workloads are to be cleaned.
type cleaning struct {
	targets   []target
	labels    labels.Selector
	selection options.Selection
}

// parse checks the command line and names all that is wrong with it. The missing flags are those that name the kinds of workloads.
func (f *cleanFlags) parse(args []string) (c cleaning, missing, err error) {
	var unknown []error
	var sharedErr, selectedErr error
	c.selection, _, sharedErr = f.manager.CompleteShared(f.environment)
	c.labels, selectedErr = f.checkSelected(len(args))
	errs := []error{sharedErr, selectedErr}
	for _, arg := range args {
		t, err := newTarget([]string{arg})
		if err == nil && c.selection.Configuration.IsZero() {
			_, err := t.in(c.selection.Kinds)
			unknown = append(unknown, err)
		}
		c.targets, errs = append(c.targets, t), append(errs, err)
	}
	return c, errors.Join(unknown...), errors.Join(errs...)
}

func (f *cleanFlags) run(ctx context.Context, p Process, config *rest.Config, asked cleaning) error {
	if f.allNamespaces {
		f.cluster.namespace = ""
	}
	cleaner, err := f.cleaner(ctx, p, config, asked)
	if err != nil {
		return err
	}
	found, err := cleaner.find(ctx, asked)
	if err != nil {
		return err
	}
	found = f.undone(cleaner, found)
	f.list(found)
	if len(found) == 0 || f.dryRun {
		return nil
	}
	if err := f.confirm(ctx); err != nil {
		return err
	}
	return f.clean(ctx, cleaner, found)
}

// clean cleans one workload after the other, until ctx ends. On one that was deleted meanwhile, nothing is left.
func (f *cleanFlags) clean(ctx context.Context, cleaner *cleaner, found []leftover) error {
	var failed []error
	for i, left := range found {
		if ctx.Err() != nil {
			failed = append(failed, fmt.Errorf("interrupted: %s not cleaned", reference.Count(len(found)-i, "workload")))
			break
		}
		switch err := cleaner.clean(ctx, left, !f.withoutRestarts); {
		case apianswer.NotFound(err):
			fmt.Fprintf(f.out, "deleted meanwhile: %s\n", left)
		case err != nil:
			failed = append(failed, fmt.Errorf("clean %s: %w", left, err))
		default:
			fmt.Fprintf(f.out, "cleaned %s\n", left)
		}
	}
	return errors.Join(failed...)
}

func (f *cleanFlags) cleaner(ctx context.Context, p Process, config *rest.Config, asked cleaning) (*cleaner, error) {
	c, err := newClient(ctx, config)
	if err != nil {
		return nil, err
	}
	return &cleaner{
		client: c, config: config, namespace: f.cluster.namespace, reader: stamp.Reader{Keys: asked.selection.Keys}, leaveOut: leaveOut(p),
	}, nil
}

// undone returns the workloads that cleaning changes: not those that have their label, and nothing else but what is to stay. It prints how
// many these are.
func (f *cleanFlags) undone(cleaner *cleaner, found []leftover) []leftover {
	count := len(found)
	found = slices.DeleteFunc(found, func(left leftover) bool {
		restarts := len(left.remains.OnTemplate) > 0 && !f.withoutRestarts
		return cleaner.excludes(left.object) && len(left.remains.OnWorkload) == 0 && !restarts
	})
	if done := count - len(found); done > 0 {
		fmt.Fprintf(f.out, "%s cleaned before, with pod templates that stay as they are\n", reference.Count(done, "workload"))
	}
	return found
}

// list prints what is left on each workload, and whose pods restart.
func (f *cleanFlags) list(found []leftover) {
	if len(found) == 0 {
		fmt.Fprintln(f.out, "nothing to remove")
		return
	}
	restarts, pods := 0, 0
	for _, left := range found {
		fmt.Fprintf(f.out, "%s\n", left)
		if len(left.remains.OnWorkload) > 0 {
			fmt.Fprintf(f.out, "  annotations: %s\n", strings.Join(left.remains.OnWorkload, ", "))
		}
		if len(left.remains.OnControlled) > 0 {
			fmt.Fprintf(f.out, "  pod template, left to its controller: %s\n", strings.Join(left.remains.OnControlled, ", "))
		}
		switch {
		case len(left.remains.OnTemplate) == 0:
			continue
		case f.withoutRestarts:
			fmt.Fprintf(f.out, "  pod template, left as it is: %s\n", strings.Join(left.remains.OnTemplate, ", "))
			continue
		}
		fmt.Fprintf(f.out, "  pod template: %s\n  %s\n", strings.Join(left.remains.OnTemplate, ", "), left.effect())
		restarts, pods = restarts+1, pods+left.pods()
	}
	fmt.Fprintln(f.out, summary(len(found), restarts, pods))
}

// summary counts workloads, those whose pod template is changed, and the pods of these.
func summary(workloads, restarts, pods int) string {
	if restarts == 0 {
		return reference.Count(workloads, "workload") + "; changes no pod template"
	}
	return fmt.Sprintf("%s; changes the pod templates of %d, with %s", reference.Count(workloads, "workload"), restarts, reference.Count(pods, "pod"))
}

// confirm asks, unless that was answered on the command line.
func (f *cleanFlags) confirm(ctx context.Context) error {
	if f.yes {
		return nil
	}
	fmt.Fprint(f.out, "Remove it? [y/N] ")
	answer := f.answer(ctx)
	fmt.Fprintln(f.out)
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("nothing was removed; answer y, or use --yes")
	}
}

// answer reads a line. An input without one, and the end of ctx, are no answer. The process ends then: what still reads ends with it.
func (f *cleanFlags) answer(ctx context.Context) string {
	if f.in == nil || ctx.Err() != nil {
		return ""
	}
	in := bufio.NewReader(f.in)
	line := make(chan string, 1)
	go func() {
		text, _ := in.ReadString('\n')
		line <- text
	}()
	select {
	case <-ctx.Done():
		return ""
	case text := <-line:
		return text
	}
}
