package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// retryPeriod is the pause between two attempts of a check.
const retryPeriod = time.Second

// leastAttempt is what an attempt gets, however short the timeout is: as long as an API server waits for a webhook by default.
const leastAttempt = 10 * time.Second

// errNotStamped means that the API server admitted the Deployment without a hash.
var errNotStamped = errors.New("no webhook stamped the Deployment: check that pod-reloader handles the namespace, " +
	"that its MutatingWebhookConfiguration has a caBundle, and that the API server reaches its pods")

// checkFlags are those of the sub-command check.
type checkFlags struct {
	shared
	labels map[string]string
	// serviceAccount is the account as written.
	serviceAccount string
	account        types.NamespacedName
	timeout        time.Duration
	out            io.Writer
}

// newCheck returns the sub-command that checks whether the API server calls the webhook. It needs the permission to create
// Deployments, and stores none.
func newCheck(p Process) *cobra.Command {
	f := &checkFlags{shared: newShared(p), out: p.Stdout}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that the API server calls the webhook",
		Long: `Check that the API server calls the webhook.

It has the API server create a Deployment by a dry run, which stores nothing, and looks for the hash that the webhook
writes. When writes pass without a hash, pod-reloader works in direct mode. Whether the API server calls the webhook for updates
as well is not checked: it depends on the operations in the rules of the MutatingWebhookConfiguration.

With --config it also checks the permissions on the custom resources of the configuration: those of --service-account, which
needs the permission to create SubjectAccessReviews, or else your own.`,
		Example: `  pod-reloader check -n shop
  pod-reloader check --config configmap:pod-reloader/pod-reloader --service-account pod-reloader/pod-reloader`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			f.account, err = parseName("service-account", f.serviceAccount)
			selection, _, invalid := f.manager.CompleteShared(f.environment)
			if f.timeout < 0 {
				err = errors.Join(err, fmt.Errorf("--timeout: %s: must not be negative", f.timeout))
			}
			if err = errors.Join(invalid, err); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), p, selection)
		},
	}
	flags := cmd.Flags()
	f.cluster.register(cmd, "Deployment")
	flags.StringToStringVar(&f.labels, "labels", nil, "labels of the Deployment, as `KEY=VALUE`, where an object selector asks for them")
	flags.Lookup("labels").DefValue = ""
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long to retry, for example while a certificate is issued")
	flags.StringVar(&f.serviceAccount, "service-account", "", "account of the installation, as `NAMESPACE/NAME`, whose permissions are checked with --config")
	f.manager.Share(flags, "annotation-prefix", "config", "namespaces")
	return cmd
}

func (f *checkFlags) run(ctx context.Context, p Process, s options.Selection) error {
	keys := s.Keys
	config, err := f.cluster.connect(p)
	if err != nil {
		return err
	}
	err = retry(ctx, f.timeout, func(ctx context.Context) error {
		c, err := newClient(ctx, config, appsv1.AddToScheme) // an attempt limits what the client looks up, too
		if err != nil {
			return err
		}
		return stamped(ctx, client.NewNamespacedClient(c, f.cluster.namespace), probe(keys, f.labels), keys.ConfigHash)
	})
	err = f.explained(err)
	if err != nil {
		err = fmt.Errorf("check the webhook in namespace %s: %w", f.cluster.namespace, err)
	} else {
		fmt.Fprintf(f.out, "the webhook stamps workloads that are created in namespace %s; updates are not checked\n", f.cluster.namespace)
	}
	if s.Configuration.IsZero() {
		return err
	}
	return errors.Join(err, f.permissions(ctx, config, s)) // in direct mode, the permissions are needed without a webhook
}

// explained returns a failure with the reason that the webhook has given, if it was called.
func (f *checkFlags) explained(err error) error {
	if reason := f.cluster.warnings.starting(stamp.WarningUnread, webhook.WarningUnchecked, webhook.WarningFailed); reason != "" && errors.Is(err, errNotStamped) {
		return errors.New("the API server calls the webhook, but it did not stamp the Deployment: " + reason)
	}
	return err
}

// retry repeats an attempt that may succeed later, until the timeout. An attempt gets what is left of it, or leastAttempt.
func retry(ctx context.Context, timeout time.Duration, attempt func(context.Context) error) (err error) {
	deadline := time.Now().Add(timeout)
	_ = wait.PollUntilContextTimeout(ctx, retryPeriod, timeout, true, func(context.Context) (bool, error) {
		limited, cancel := context.WithTimeout(ctx, max(time.Until(deadline), leastAttempt))
		defer cancel()
		if last := attempt(limited); err == nil || last == nil || limited.Err() == nil {
			err = last // an attempt that takes too long hides no cause
		}
		// With the failure policy Fail, a webhook that the API server cannot call is an internal error.
		later := errors.Is(err, errNotStamped) || apierrors.IsInternalError(err)
		return !later || !time.Now().Before(deadline), nil
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // an interrupted check proves nothing
	}
	return err
}

// stamped has the API server admit a Deployment, and returns errNotStamped if its template comes back without a hash.
func stamped(ctx context.Context, c client.Client, deployment *appsv1.Deployment, hash string) error {
	if err := c.Create(ctx, deployment, client.DryRunAll); err != nil {
		return err
	}
	if deployment.Spec.Template.Annotations[hash] == "" {
		return errNotStamped
	}
	return nil
}

// probe is a Deployment that asks for reloads, and that the strictest pod security admits.
func probe(keys annotation.Keys, labels map[string]string) *appsv1.Deployment {
	selected := map[string]string{"app.kubernetes.io/name": "pod-reloader-check"}
	no, yes := false, true
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "pod-reloader-check-",
			Labels:       labels,
			// Kubernetes creates this one in each namespace.
			Annotations: map[string]string{keys.ConfigMaps: "kube-root-ca.crt"},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selected},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selected},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{{
						Name: "check", Image: "pod-reloader",
						SecurityContext: &corev1.SecurityContext{
							AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						},
					}},
				},
			},
		},
	}
}
