package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// whyFlags are those of the sub-command why.
type whyFlags struct {
	shared
	output outputFormat
	key    string
}

// newWhy returns the sub-command that explains one workload. It needs the permissions to read the workload and its
// configuration, the digest key for comparing contents, and the workload's Events.
func newWhy(p Process) *cobra.Command {
	return (&whyFlags{shared: newShared(p)}).command(p)
}

func (f *whyFlags) command(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Explain why a workload was restarted, or why it was not",
		Long: `Explain why a workload was restarted, or why it was not.

It uses your permissions: get on the workload, its ConfigMaps and Secrets, the digest key and the installation's Lease, list on
Events, list on ConfigMaps and Secrets for annotations of Stakater's Reloader, list on SecretProviderClasses and
SecretProviderClassPodStatuses with --enable-csi-integration, list on Namespaces with --namespace-selector, list on Jobs for a
CronJob with concurrencyPolicy Forbid, and, for the custom resources of --config, list and watch on them, get on the ConfigMaps
and Secrets that they name, get on the resources that labels of the workload name, and get on the ConfigMap of --config. It
reports what it cannot read, except for the Lease.
The flags of the installation are those of its Deployment, which needs get on it; without that permission, repeat them.`,
		Example: `  pod-reloader why deployment/cart -n shop
  kubectl -n pod-reloader exec deploy/pod-reloader -- /pod-reloader why deployment/cart -n shop -o json`,
		Args: cobra.ArbitraryArgs, // parse names what is wrong with them, together with the flags
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, config, err := f.completed(cmd.Context(), p, args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), p, config, asked)
		},
	}
	flags := cmd.Flags()
	f.cluster.register(cmd, "workload")
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

// question is a valid command line: which workload is asked about, and how the installation handles it.
type question struct {
	target    target
	selection options.Selection
	reload    options.Reload
	// lease is that of the installation.
	lease types.NamespacedName
}

// parse checks the command line and names all that is wrong with it. The missing flag is one that names the kind of the workload.
func (f *whyFlags) parse(args []string) (q question, missing, err error) {
	var argErr, sharedErr, leaseErr, keyErr error
	q.selection, q.reload, sharedErr = f.manager.CompleteShared(f.environment)
	q.lease.Namespace, q.lease.Name, leaseErr = f.manager.SharedLease(f.environment)
	f.key, keyErr = f.manager.KeySecret()
	q.lease.Namespace = cmp.Or(q.lease.Namespace, f.home)
	if q.target, argErr = newTarget(args); argErr == nil && q.selection.Configuration.IsZero() {
		_, _, missing = q.find(q.selection.Kinds)
	}
	return q, missing, errors.Join(f.output.check(), sharedErr, leaseErr, keyErr, argErr)
}

func (f *whyFlags) run(ctx context.Context, p Process, config *rest.Config, q question) error {
	report, err := f.explain(ctx, config, q)
	if err != nil {
		return err
	}
	return f.output.write(p.Stdout, report, report.Write)
}

// explain gathers what a Report is made of: the workload, its context, and the states of its config objects. What can be left out of a
// Report is a Problem where it cannot be read.
func (f *whyFlags) explain(ctx context.Context, config *rest.Config, q question) (explain.Report, error) {
	c, err := newClient(ctx, config, corev1.AddToScheme, eventsv1.AddToScheme, coordinationv1.AddToScheme)
	if err != nil {
		return explain.Report{}, err
	}
	in, unread, err := f.readWorkload(ctx, config, c, q)
	if err != nil {
		return explain.Report{}, err
	}
	for _, err := range append(unread, f.readContext(ctx, c, q, &in)...) {
		if err != nil {
			in.Problems = append(in.Problems, annotation.Problem{Message: err.Error()})
		}
	}
	if err := f.readConfig(ctx, config, c, q, &in); err != nil {
		return explain.Report{}, err
	}
	return explain.Explain(in), nil
}

// readWorkload reads the workload and its annotations. unread says what else the annotations depend on and cannot be read.
func (f *whyFlags) readWorkload(
	ctx context.Context, config *rest.Config, c client.Reader, q question,
) (in explain.Input, unread []error, err error) {
	handled, err := q.handled(ctx, config)
	if err != nil {
		return in, nil, err
	}
	object, err := readWorkload(ctx, c, handled.kind, types.NamespacedName{Namespace: f.cluster.namespace, Name: q.target.name})
	if apierrors.IsForbidden(err) && handled.outside != "" {
		err = fmt.Errorf("not handled: %s (%w)", handled.outside, err) // the installation needs no permission on it
	}
	if err != nil {
		return in, nil, err
	}
	in = explain.Input{
		Object: object, Outside: handled.outside, Keys: q.selection.Keys, Now: time.Now(),
		ReloadMissingRequired: q.reload.ReloadMissingRequired, RerunFinishedJobs: q.reload.RerunFinishedJobs, NotifyOnly: q.reload.NotifyOnly,
		Refractory: q.reload.Refractory,
	}
	if in.Stakater = &q.selection.Stakater.Keys; q.selection.WithoutStakater {
		in.Stakater, in.Unread = nil, in.Stakater
	}
	custom, err := handled.existing(ctx, config)
	if err != nil {
		return in, nil, err
	}
	reader := stamp.Reader{
		Keys: in.Keys, Dialects: q.selection.Dialects(handled.known()), Strategy: q.reload.Strategy,
		Objects: func(namespace string) (annotation.Objects, error) {
			custom.namespace = namespace
			custom.Objects = listing(ctx, c, namespace, q.selection.Stakater)
			return custom, nil
		},
	}
	in.View, in.Problems = reader.Read(in.Object)
	if in.Object.Kind.Schedules() && q.reload.WithoutRuns {
		in.View.Intent = in.View.Intent.NotAtOnce()
	}
	return in, []error{handled.problem, custom.failed}, nil
}

// readContext reads the digest keys and what else bears on the workload. The errors say what cannot be read.
func (f *whyFlags) readContext(ctx context.Context, c client.Reader, q question, in *explain.Input) []error {
	u := &unstructured.Unstructured{Object: in.Object.Raw}
	var unread [6]error
	in.Ring, unread[0] = f.ring(ctx, c)
	in.KeySecret, in.NoKey = f.home+"/"+f.key, f.noKey(unread[0])
	outside, problem := outside(ctx, c, q.selection.Scope, u)
	in.Outside, unread[1] = cmp.Or(in.Outside, outside), problem
	in.Warnings, unread[2] = warnings(ctx, c, u)
	in.FailingWatch, unread[3] = watchFailure(ctx, c, f.home)
	in.Lease, unread[4] = leaseOf(ctx, c, q.lease)
	in.Jobs, unread[5] = jobs(ctx, c, *in)
	return unread[:]
}

// readConfig reads the states of the config objects that the workload tracks.
func (f *whyFlags) readConfig(ctx context.Context, config *rest.Config, c client.Reader, q question, in *explain.Input) error {
	read, err := f.stateReader(config, c, in.Ring)
	if err != nil {
		return err
	}
	refs := in.View.Intent.Refs()
	last, _ := in.View.Managed.LastReload(in.Now)
	read, in.Paths = f.referents(ctx, config, q.selection, referentsOf{refs, in.Ring, read, causesOf(last.Changes)})
	in.States, in.ReadErrors, err = readStates(ctx, refs, read)
	return err
}
