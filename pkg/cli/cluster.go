package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/app"
)

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

// parseName reads the value of a flag as NAMESPACE/NAME; an empty one is no name.
func parseName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if value != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		return types.NamespacedName{}, fmt.Errorf("--%s: %q: want NAMESPACE/NAME", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
