package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/app"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// shared is what commands have in common with the manager and with each other.
type shared struct {
	cluster cluster
	// manager are the flags of the manager, of which a command has some.
	manager *options.Flags
	// environment is that of the process: in a pod of the installation, the same as the manager's.
	environment options.Environment
	// home is the namespace of the installation's Deployment, own that of its digest key and, unless a flag names another one, of its lease.
	home, own string
	// unknown says what is not known of the installation, so that the answer can be wrong.
	unknown []error
	// flags are those of the command.
	flags *pflag.FlagSet
}

func newShared(p Process) shared {
	environment := options.OSEnvironment()
	environment.Getenv = p.Getenv
	return shared{manager: options.NewFlags(), environment: environment}
}

// cluster is where a command asks: the flags --kubeconfig and --namespace.
type cluster struct {
	kubeconfig, namespace string
	// warnings are those that the API server has sent since the connection.
	warnings apiWarnings
}

// register adds the flags; what names the object whose namespace it is.
func (c *cluster) register(cmd *cobra.Command, what string) {
	c.addKubeconfig(cmd.Flags())
	c.addNamespace(cmd.Flags(), "`namespace` of the "+what+"; without it the one of the kubeconfig's context")
}

func (c *cluster) addKubeconfig(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "`path` of a kubeconfig; without it KUBECONFIG, or ~/.kube/config; if there is none, the pod's service account")
}

func (c *cluster) addNamespace(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&c.namespace, "namespace", "n", "", usage)
}

// connect completes the namespace, and returns the configuration of the client.
func (c *cluster) connect(p Process) (*rest.Config, error) {
	if p.Cluster == nil && c.namespace == "" {
		var err error
		if c.namespace, err = app.ContextNamespace(c.kubeconfig); err != nil {
			return nil, err
		}
	}
	return c.config(p)
}

// config returns the configuration of the client, which prints the warnings of the API server.
func (c *cluster) config(p Process) (*rest.Config, error) {
	config := p.Cluster
	if config == nil {
		var err error
		if config, err = app.RESTConfig(c.kubeconfig, p.readBuild().Version); err != nil {
			return nil, err
		}
	}
	config = rest.CopyConfig(config)
	c.warnings.out = p.Stderr
	config.WarningHandler, config.WarningHandlerWithContext = nil, &c.warnings
	return config, nil
}

// discoveryLimit is how long an answer about what is served may take.
const discoveryLimit = 30 * time.Second

// newClient returns a client that knows the types of some groups. It looks up what is served only until ctx ends.
func newClient(ctx context.Context, config *rest.Config, groups ...func(*runtime.Scheme) error) (client.Client, error) {
	scheme := runtime.NewScheme()
	known := runtime.SchemeBuilder(groups)
	if err := known.AddToScheme(scheme); err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(config)
	limited.Timeout = discoveryLimit
	limited.Wrap(func(next http.RoundTripper) http.RoundTripper { return until{ctx, next} })
	lookups, err := rest.HTTPClientFor(limited)
	if err != nil {
		return nil, err
	}
	mapper, err := app.NewMapper(limited, lookups)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// until ends requests with a context, too: a RESTMapper passes no context of its caller.
type until struct {
	ctx  context.Context //nolint:containedctx // it is that of the command
	next http.RoundTripper
}

// WrappedRoundTripper is how client-go finds the transport below, to cancel a request that has no answer.
func (u until) WrappedRoundTripper() http.RoundTripper { return u.next }

// RoundTrip sends a request.
func (u until) RoundTrip(r *http.Request) (*http.Response, error) {
	both, cancel := context.WithCancel(r.Context())
	context.AfterFunc(u.ctx, cancel) //nolint:contextcheck // the request has two
	answer, err := u.next.RoundTrip(r.WithContext(both))
	if err != nil && u.ctx.Err() != nil {
		err = u.ctx.Err()
	}
	return answer, err
}

// readConfiguration reads the configuration of the installation.
func readConfiguration(ctx context.Context, config *rest.Config, location configuration.Location) (configuration.Configuration, error) {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return configuration.Configuration{}, err
	}
	return refresh.Read(ctx, location, c)
}

// requireNamespace returns an error if the namespace of a command that has found no workload does not exist: its name may be misspelled. An
// empty one means all. Whether it exists is not known without the permission to get it.
func requireNamespace(ctx context.Context, c client.Reader, name string) error {
	if name == "" {
		return nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := c.Get(ctx, types.NamespacedName{Name: name}, namespace); {
	case err == nil, apierrors.IsForbidden(err):
		return nil
	case apianswer.NotFound(err):
		return fmt.Errorf("namespace %s does not exist; name another one with -n", name)
	default:
		return fmt.Errorf("read namespace %s: %w", name, err)
	}
}

// parseName reads the value of a flag as NAMESPACE/NAME; an empty one is no name.
func parseName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if value != "" && (!ok || options.CheckNamespace(namespace) != nil || reference.ValidName(name) != nil) {
		return types.NamespacedName{}, fmt.Errorf("--%s: %q: want NAMESPACE/NAME", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
