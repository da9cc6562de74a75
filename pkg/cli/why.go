package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// whyFlags are those of the sub-command why.
type whyFlags struct {
	shared
	selected
	output outputFormat
	key    string
}

// newWhy returns the sub-command that explains one workload, or all. It needs the permissions to read the workloads and their
// configuration, the digest key for comparing contents, and the Events of the workloads.
func newWhy(p Process) *cobra.Command {
	return (&whyFlags{shared: newShared(p)}).command(p)
}

func (f *whyFlags) command(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why [KIND/NAME]",
		Short: "Explain why a workload was restarted, or why it was not",
		Long: `Explain why a workload was restarted, or why it was not. With --all, list the workloads whose annotations ask for
reloads, and which of them do not run with their present configuration.

It uses your permissions: get on the workload, or list on every kind of workload with --all; get on its ConfigMaps and
Secrets, the digest key and the installation's Lease; list on Events; list on ConfigMaps and Secrets for annotations of
Stakater's Reloader; list on SecretProviderClasses and SecretProviderClassPodStatuses with --enable-csi-integration; list on
Namespaces with --namespace-selector; list on Jobs for a CronJob with concurrencyPolicy Forbid; and, for the custom resources
of --config, list and watch on them, get on the ConfigMaps and Secrets that they name, get on the resources that labels of the
workload name, and get on the ConfigMap of --config. It reports what it cannot read, except for the Lease.
The flags of the installation are those of its Deployment, which needs get on it; without that permission, it reports a
problem: repeat them.`,
		Example: `  pod-reloader why deployment/cart -n shop
  pod-reloader why --all --all-namespaces
  kubectl -n pod-reloader exec deploy/pod-reloader -- /pod-reloader why deployment/cart -n shop -o json`,
		Args: cobra.ArbitraryArgs, // parse names what is wrong with them, together with the flags
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, config, err := f.completed(cmd.Context(), p, args)
			if err != nil {
				return err
			}
			if err = f.run(cmd.Context(), p, config, asked); err != nil {
				warn(p, f.unknown)
			}
			return err
		},
	}
	flags := cmd.Flags()
	f.cluster.register(cmd, "workloads")
	f.registerSelected(flags)
	f.output.register(cmd, "text", "json")
	f.registerInstallation(cmd)
	f.manager.Share(flags, "namespaces", "namespaces-to-ignore", "namespace-selector", "object-selector", "workload-kinds", "secrets",
		"ignored-workload-types", "is-Argo-Rollouts", "is-openshift", "config", "annotation-prefix", "missing-required", "refractory",
		"rerun-finished-jobs", "run-cronjobs", "reload-strategy", "webhook-url", "digest-key-secret", "leader-election-id",
		"leader-election-namespace")
	f.manager.ShareStakater(flags)
	return cmd
}

// completed reads a command line together with the flags of the installation.
func (f *whyFlags) completed(ctx context.Context, p Process, args []string) (asked question, config *rest.Config, err error) {
	config, err = f.complete(ctx, p, func() (missing, err error) {
		asked, missing, err = f.parse(args)
		return missing, err
	})
	return asked, config, err
}

// question is a valid command line: which workloads are asked about, and how the installation handles them.
type question struct {
	// target is the one workload; of all, labels are selected.
	target    target
	labels    labels.Selector
	selection options.Selection
	reload    options.Reload
	// lease is that of the installation.
	lease types.NamespacedName
}

// parse checks the command line and names all that is wrong with it. The missing flag is one that names the kind of the workload.
func (f *whyFlags) parse(args []string) (q question, missing, err error) {
	var argErr, selectedErr, sharedErr, leaseErr, keyErr error
	q.selection, q.reload, sharedErr = f.manager.CompleteShared(f.environment)
	q.lease.Namespace, q.lease.Name, leaseErr = f.manager.SharedLease(f.environment)
	f.key, keyErr = f.manager.KeySecret()
	q.lease.Namespace = cmp.Or(q.lease.Namespace, f.own)
	if q.labels, selectedErr = f.checkSelected(len(args)); !f.all && len(args) > 0 {
		q.target, argErr = newTarget(args)
	}
	if !f.all && argErr == nil && selectedErr == nil && q.selection.Configuration.IsZero() {
		_, _, missing = q.find(q.selection.Kinds)
	}
	return q, missing, errors.Join(f.output.check(), sharedErr, leaseErr, keyErr, selectedErr, argErr)
}

func (f *whyFlags) run(ctx context.Context, p Process, config *rest.Config, q question) error {
	if f.allNamespaces {
		f.cluster.namespace = ""
	}
	e, err := f.newExplainer(ctx, config, q)
	if err != nil {
		return err
	}
	defer e.end()
	if f.all {
		overview, err := e.overview(ctx, leaveOut(p))
		if err != nil {
			return err
		}
		return f.output.write(p.Stdout, overview, overview.Write)
	}
	report, err := e.one(ctx)
	if err != nil {
		return err
	}
	return f.output.write(p.Stdout, report, report.Write)
}

// one explains the one workload that is asked about.
func (e *explainer) one(ctx context.Context) (explain.Report, error) {
	kind, outside, err := e.find(e.configured.kinds)
	if err != nil {
		return explain.Report{}, errors.Join(e.configured.problem, err)
	}
	object, err := readWorkload(ctx, e.client, kind, types.NamespacedName{Namespace: e.flags.cluster.namespace, Name: e.target.name})
	if apierrors.IsForbidden(err) && outside != "" {
		err = fmt.Errorf("not handled: %s (%w)", outside, err) // the installation needs no permission on it
	}
	if err != nil {
		return explain.Report{}, err
	}
	in, unread := e.input(object)
	in.Outside = outside
	return e.explain(ctx, in, append(e.common(), unread...))
}
