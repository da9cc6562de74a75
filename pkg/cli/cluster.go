package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/app"
	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/options"
)

// shared is what commands have in common with the manager and with each other.
type shared struct {
	cluster cluster
	// manager are the flags of the manager, of which a command has some.
	manager *options.Flags
	// environment is that of the process: in a pod of the installation, the same as the manager's.
	environment options.Environment
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

// newClient returns a client that knows the types of some groups.
func newClient(config *rest.Config, groups ...func(*runtime.Scheme) error) (client.Client, error) {
	scheme := runtime.NewScheme()
	known := runtime.SchemeBuilder(groups)
	if err := known.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// readConfiguration reads the configuration of the installation.
func readConfiguration(ctx context.Context, config *rest.Config, location configuration.Location) (configuration.Configuration, error) {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return configuration.Configuration{}, err
	}
	return refresh.Read(ctx, location, c)
}

// parseName reads the value of a flag as NAMESPACE/NAME; an empty one is no name.
func parseName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if value != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		return types.NamespacedName{}, fmt.Errorf("--%s: %q: want NAMESPACE/NAME", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
