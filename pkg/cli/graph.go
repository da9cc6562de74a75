package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// graphFlags are those of the sub-command graph.
type graphFlags struct {
	shared
	output outputFormat
}

// newGraph returns the sub-command that shows the custom resources of the configuration with what they refer to.
func newGraph(p Process) *cobra.Command {
	f := &graphFlags{shared: newShared(p)}
	cmd := &cobra.Command{
		Use:   "graph [RESOURCE.GROUP/NAME|KIND/NAME...]",
		Short: "Show custom resources and what they refer to, and why they are held",
		Long: `Show the custom resources of the configuration with what they refer to, and why they are held.

It only reads, with your permissions: list and watch on the resources, in all namespaces or in those of --namespaces; get on the
ConfigMaps and Secrets that they refer to; get on the ConfigMap of --config; and get on the Deployment of the installation, whose flags it
takes over. What it may not read is shown as forbidden, and what it cannot read within 30 seconds as unsynced. Without an object,
all of them are shown. Of a workload it shows what that runs with, which needs get on the workload.`,
		Example: `  pod-reloader graph -n proxies kafkaproxies.kroxylicious.io/my-proxy
  pod-reloader graph -n proxies deployment/my-proxy
  pod-reloader graph -o mermaid`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var selection options.Selection
			config, err := f.complete(cmd.Context(), p, func() (missing, err error) {
				selection, _, err = f.manager.CompleteShared(f.environment)
				if selection.Configuration.IsZero() {
					missing = errNoConfiguration
				}
				return missing, errors.Join(err, f.output.check())
			})
			if err != nil {
				return err
			}
			warn(p, f.unknown)
			return f.run(cmd.Context(), p, config, selection, args)
		},
	}
	f.cluster.register(cmd, "objects")
	f.output.register(cmd, "text", "dot", "mermaid")
	f.registerInstallation(cmd)
	f.manager.Share(cmd.Flags(), "namespaces", "secrets", "config", "annotation-prefix", "workload-kinds", "is-Argo-Rollouts", "is-openshift")
	return cmd
}

// draw returns what makes a text of a graph.
func draw(format string) func(referent.Picture) string {
	return map[string]func(referent.Picture) string{
		"text": referent.Picture.Text, "dot": referent.Picture.DOT, "mermaid": referent.Picture.Mermaid,
	}[format]
}

func (f *graphFlags) run(ctx context.Context, p Process, config *rest.Config, s options.Selection, objects []string) error {
	// States do not depend on the digest key, so that no permission on the installation's is needed.
	key, err := digest.NewKey(rand.Reader)
	if err != nil {
		return err
	}
	ring, err := digest.NewRing(map[string][]byte{"key": key})
	if err != nil {
		return err
	}
	c, stop, err := readChain(ctx, config, s, ring)
	if err != nil {
		return err
	}
	defer stop()
	if objects, err = f.roots(ctx, config, s, c, objects); err != nil {
		return err
	}
	picture, err := c.Picture(f.cluster.namespace, objects...)
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.Stdout, draw(f.output.name)(picture))
	return err
}
