package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/absence"
	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/app"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/explain"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// whyFlags are those of the sub-command why.
type whyFlags struct {
	kubeconfig, namespace, output string
	keyNamespace, key             string
	// manager are the flags of the manager, of which the command has those that say what is looked after.
	manager *options.Flags
}

// newWhy returns the sub-command that explains one workload. It needs the rights to read the workload and its
// configuration, the digest key for comparing contents, and the workload's Events.
func newWhy(stdout io.Writer, getenv func(string) string) *cobra.Command {
	f := &whyFlags{manager: options.NewFlags()}
	cmd := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Explain why a workload was restarted, or why it was not",
		Long: `Explain why a workload was restarted, or why it was not.

It reads with your rights: get on the workload, its ConfigMaps and Secrets and the digest key, list on Events.
What it may not read it says. The flags that the installation was given to say what it looks after are given
here as well.`,
		Example: `  pod-reloader why deployment/cart -n shop
  kubectl -n pod-reloader exec deploy/pod-reloader -- /pod-reloader why deployment/cart -n shop -o json`,
		Args: cobra.ArbitraryArgs, // parse names what is wrong with them, together with the flags
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := f.parse(args)
			if err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), stdout, asked)
		},
	}
	home := getenv("POD_NAMESPACE")
	if home == "" {
		home = "pod-reloader"
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of a kubeconfig; without it KUBECONFIG, the pod's service account, or ~/.kube/config")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the workload; without it the one of the kubeconfig's context")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	flags.StringVar(&f.keyNamespace, "installation-namespace", home, "namespace of the installation, where its digest key is")
	flags.StringVar(&f.key, "digest-key-secret", "pod-reloader-digest-key", "name of the Secret with the digest keys")
	f.manager.Share(flags, "namespaces", "namespace-selector", "object-selector", "workload-kinds", "config", "annotation-prefix", "missing-required")
	return cmd
}

// question is a valid command line: which workload is asked about, and how the installation looks after it.
type question struct {
	target    target
	selection options.Selection
	reload    options.Reload
}

// parse checks the command line and names all that is wrong with it.
func (f *whyFlags) parse(args []string) (question, error) {
	var q question
	var outputErr, argErr, sharedErr error
	if f.output != "text" && f.output != "json" {
		outputErr = fmt.Errorf("--output: %q: want text or json", f.output)
	}
	q.selection, q.reload, sharedErr = f.manager.CompleteShared()
	if q.target, argErr = newTarget(args); argErr == nil && q.selection.Configuration.IsZero() {
		_, argErr = q.target.in(q.selection.Kinds)
	}
	return q, errors.Join(outputErr, sharedErr, argErr)
}

func (f *whyFlags) run(ctx context.Context, stdout io.Writer, q question) error {
	if f.namespace == "" {
		var err error
		if f.namespace, err = app.ContextNamespace(f.kubeconfig); err != nil {
			return err
		}
	}
	config, err := app.RESTConfig(f.kubeconfig, buildVersion())
	if err != nil {
		return err
	}
	report, err := f.explain(ctx, config, q)
	if err != nil {
		return err
	}
	if f.output == "text" {
		return report.Write(stdout)
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// explain gathers what a Report is made of.
func (f *whyFlags) explain(ctx context.Context, config *rest.Config, q question) (explain.Report, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		return explain.Report{}, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return explain.Report{}, err
	}
	kind, kindErr, err := q.kind(ctx, config)
	if err != nil {
		return explain.Report{}, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind.GroupVersionKind)
	if err := c.Get(ctx, types.NamespacedName{Namespace: f.namespace, Name: q.target.name}, u); err != nil {
		return explain.Report{}, fmt.Errorf("read the workload: %w", err)
	}
	keys := q.selection.Keys
	in := explain.Input{
		Object: workload.Object{Kind: kind, Raw: u.Object}, Keys: keys, Now: time.Now(),
		ReloadMissingRequired: q.reload.ReloadMissingRequired,
	}
	reader := stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}
	in.View, in.Problems = reader.Read(in.Object)
	ring, ringErr := f.ring(ctx, c)
	in.Ring = ring
	in.NoKey = f.noKey(ringErr)
	outside, scopeErr := outside(ctx, c, q.selection.Scope, u)
	in.Outside = outside
	warnings, eventsErr := warnings(ctx, c, u)
	in.Warnings = warnings
	blind, blindErr := blindness(ctx, c, f.keyNamespace)
	in.Blind = blind
	for _, err := range []error{kindErr, ringErr, scopeErr, eventsErr, blindErr} {
		if err != nil {
			in.Problems = append(in.Problems, annotation.Problem{Message: err.Error()})
		}
	}
	read, err := f.stateReader(config, c, ring)
	if err != nil {
		return explain.Report{}, err
	}
	if in.States, in.Unread, err = readStates(ctx, in.View.Intent.Refs(), read); err != nil {
		return explain.Report{}, err
	}
	return explain.Explain(in), nil
}

// ring reads the digest keys. Without them the Report tells less, so that is no error.
func (f *whyFlags) ring(ctx context.Context, c client.Reader) (digest.Ring, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: f.keyNamespace, Name: f.key}, secret); err != nil {
		return digest.Ring{}, fmt.Errorf("the digest key cannot be read: %w", err)
	}
	ring, err := digest.NewRing(secret.Data)
	if err != nil {
		return digest.Ring{}, fmt.Errorf("the digest key in Secret %s/%s is unusable: %w", f.keyNamespace, f.key, errors.Join(errUnusable, err))
	}
	return ring, nil
}

// errUnusable marks a digest key that is no key.
var errUnusable = errors.New("put a key of 32 random bytes into its data, or delete it")

// noKey says why there is no digest key, and what to do; empty if there may be one.
func (f *whyFlags) noKey(err error) string {
	switch {
	case absence.Certain(err):
		return fmt.Sprintf("the Secret %s/%s does not exist; pod-reloader creates it when it starts, so see that it runs, or name where it is with --installation-namespace and --digest-key-secret",
			f.keyNamespace, f.key)
	case errors.Is(err, errUnusable):
		return fmt.Sprintf("the Secret %s/%s holds none", f.keyNamespace, f.key)
	default:
		return ""
	}
}

// stateReader returns what reads one config object: its content where there is a digest key, else its metadata.
func (f *whyFlags) stateReader(config *rest.Config, c client.Reader, ring digest.Ring) (func(context.Context, reference.Ref) (digest.State, error), error) {
	if ring.Empty() {
		return func(ctx context.Context, ref reference.Ref) (digest.State, error) {
			return readVersion(ctx, c, f.namespace, ref)
		}, nil
	}
	store, err := configstate.New(configstate.Options{Config: config, Ring: func() digest.Ring { return ring }, Log: logr.Discard()})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, ref reference.Ref) (digest.State, error) {
		states, err := store.Live(ctx, f.namespace, []reference.Ref{ref})
		return states[ref], err
	}, nil
}

// readVersion reads whether a config object is there, and in which version.
func readVersion(ctx context.Context, c client.Reader, namespace string, ref reference.Ref) (digest.State, error) {
	meta := &metav1.PartialObjectMetadata{}
	kind := "ConfigMap"
	if ref.Kind == reference.Secret {
		kind = "Secret"
	}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, meta)
	if absence.Certain(err) {
		return digest.State{Absent: true}, nil
	}
	return digest.State{UID: string(meta.UID), ResourceVersion: meta.ResourceVersion}, err
}

// readStates reads the config objects one by one, since one that is forbidden shall not hide the others.
func readStates(ctx context.Context, refs []reference.Ref, read func(context.Context, reference.Ref) (digest.State, error)) (map[reference.Ref]digest.State, map[reference.Ref]error, error) {
	states, unread := map[reference.Ref]digest.State{}, map[reference.Ref]error{}
	for _, ref := range refs {
		state, err := read(ctx, ref)
		switch {
		case err == nil:
			states[ref] = state
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		default:
			unread[ref] = err
		}
	}
	return states, unread, nil
}
