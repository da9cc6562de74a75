package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/plan"
)

// planFlags are those of the sub-command plan.
type planFlags struct {
	shared
	output       outputFormat
	fromReloader bool
	// reloader is NAMESPACE/NAME of Reloader's Deployment.
	reloader string
}

// newPlan returns the sub-command that compares another reloader with this one, before this one is installed. It reads only: it
// needs the permission to list workloads, and the metadata of ConfigMaps and Secrets.
func newPlan(p Process) *cobra.Command {
	f := &planFlags{shared: newShared(p)}
	cmd := &cobra.Command{
		Use:   "plan --from-reloader [flags] [-- ARGUMENT OF RELOADER...]",
		Short: "List differences from Stakater's Reloader",
		Long: `List differences from Stakater's Reloader, and their reasons, before anything is installed.

It only reads. It uses your permissions: list on the workloads, on ConfigMaps and Secrets (not on a kind that Reloader ignores and
no list of SAP's annotations names), on Namespaces with --namespace-selector, on SecretProviderClasses with
--enable-csi-integration, get on Reloader's Deployment with --reloader, and get on the Namespace of -n if it finds no workload there.
Of ConfigMaps and Secrets it reads the metadata, not the content. It fails if the Namespace of -n does not exist.

Give the flags that Reloader runs with, or let --reloader read them, or write its arguments after --. Exit codes: 0 where
all workloads and objects are treated the same, 3 where one or more are not, 1 where the comparison failed, 2 for wrong usage.`,
		Example: `  pod-reloader plan --from-reloader --reloader reloader/reloader-reloader
  pod-reloader plan --from-reloader -o json -- --auto-reload-all=true --is-Argo-Rollouts=true`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(f.check(), afterDash(cmd, args)); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), p, args)
		},
	}
	flags := cmd.Flags()
	f.cluster.addKubeconfig(flags)
	f.cluster.addNamespace(flags, "only workloads of this `namespace`; without it those of --namespaces, or of all")
	f.output.register(cmd, "text", "json")
	flags.BoolVar(&f.fromReloader, "from-reloader", false, "compare with Stakater's Reloader")
	flags.StringVar(&f.reloader, "reloader", "", "read the flags from Reloader's Deployment, as `NAMESPACE/NAME`")
	f.manager.Share(flags, "namespaces", "namespaces-to-ignore", "namespace-selector", "object-selector", "workload-kinds", "secrets",
		"ignored-workload-types", "is-Argo-Rollouts", "is-openshift", "annotation-prefix", "missing-required", "reload-strategy", "env-vars-hash",
		"webhook-url")
	f.manager.ShareStakater(flags)
	return cmd
}

// afterDash returns an error for an argument before --, such as the value in "--reload-on-create true": a flag of the command is on
// without a value, and takes none from the next argument.
func afterDash(cmd *cobra.Command, args []string) error {
	before := cmd.ArgsLenAtDash()
	if before < 0 {
		before = len(args)
	}
	if before == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q: write --flag=value, or all arguments of Reloader after --", args[0])
}

// check returns all that is wrong with the command line.
func (f *planFlags) check() error {
	selection, _, err := f.manager.CompleteShared(f.environment)
	_, named := parseName("reloader", f.reloader)
	errs := []error{f.output.check(), err, named, checkDialect(selection)}
	if !f.fromReloader {
		errs = append(errs, errors.New("name what is compared: --from-reloader"))
	}
	return errors.Join(errs...)
}

// checkDialect returns an error where this program does not read Reloader's annotations.
func checkDialect(selection options.Selection) error {
	if selection.WithoutStakater {
		return errors.New("--stakater-annotations=false leaves nothing to compare: remove it")
	}
	return nil
}

func (f *planFlags) run(ctx context.Context, p Process, args []string) error {
	config, err := f.cluster.config(p)
	if err != nil {
		return err
	}
	reader, err := newPlanReader(ctx, p, config)
	if err != nil {
		return err
	}
	from := reloaderSettings{manager: f.manager, environment: f.environment}
	if f.reloader != "" {
		name, _ := parseName("reloader", f.reloader)
		deployment, err := reader.deployment(ctx, name)
		if err != nil {
			return fmt.Errorf("read Reloader's Deployment %s: %w", f.reloader, err)
		}
		from.take(deployment)
	}
	from.parse(args)
	report, err := f.compare(ctx, reader, from)
	if err != nil {
		return err
	}
	if err := f.output.write(p.Stdout, report, report.Write); err != nil {
		return err
	}
	if len(report.Groups) > 0 {
		return exitStatus(exitDifferent)
	}
	return nil
}

// compare reads the cluster and compares both programs.
func (f *planFlags) compare(ctx context.Context, reader planReader, from reloaderSettings) (plan.Report, error) {
	selection, reload, settings := from.complete()
	if err := checkDialect(selection); err != nil { // it may be one of the arguments of Reloader
		return plan.Report{}, usageError{err}
	}
	in := plan.Input{
		Now: time.Now(), Reloader: from.reloader(selection, reload),
		Here: plan.Here{
			Keys: selection.Keys, Dialects: selection.Dialects(options.Referents{}), Scope: selection.Scope, Kinds: selection.Kinds,
			ReloadMissingRequired: reload.ReloadMissingRequired, NotifyOnly: reload.NotifyOnly, RerunFinishedJobs: reload.RerunFinishedJobs,
			WithoutSecrets: selection.WithoutSecrets,
		},
	}
	namespaces := in.Reloader.Namespaces // here they are the same, or fewer
	if f.cluster.namespace != "" {
		namespaces = []string{f.cluster.namespace}
	}
	if err := reader.read(ctx, &in, namespaces); err != nil {
		return plan.Report{}, err
	}
	if len(in.Workloads) == 0 {
		if err := requireNamespace(ctx, reader.client, f.cluster.namespace); err != nil {
			return plan.Report{}, err
		}
	}
	report := plan.Compare(in)
	report.Settings = append(settings, report.Settings...)
	return report, nil
}
