package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/app"
)

// cluster is where a command asks: the flags --kubeconfig and --namespace.
type cluster struct{ kubeconfig, namespace string }

// register adds the flags; what names the object whose namespace it is.
func (c *cluster) register(cmd *cobra.Command, what string) {
	c.addKubeconfig(cmd.Flags())
	c.addNamespace(cmd.Flags(), "`namespace` of the "+what+"; without it the one of the kubeconfig's context")
}

func (c *cluster) addKubeconfig(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "`path` of a kubeconfig; without it KUBECONFIG, the pod's service account, or ~/.kube/config")
}

func (c *cluster) addNamespace(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&c.namespace, "namespace", "n", "", usage)
}

// connect completes the namespace, and returns the configuration of the client.
func (c *cluster) connect(p Process) (*rest.Config, error) {
	if p.Cluster != nil {
		return p.Cluster, nil
	}
	if c.namespace == "" {
		var err error
		if c.namespace, err = app.ContextNamespace(c.kubeconfig); err != nil {
			return nil, err
		}
	}
	return app.RESTConfig(c.kubeconfig, p.readBuild().Version)
}
