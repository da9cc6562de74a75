package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-reloader/pod-reloader/pkg/configuration"
	"github.com/pod-reloader/pod-reloader/pkg/configuration/refresh"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// rolesFlags are those of the sub-command roles.
type rolesFlags struct {
	shared
	name string
}

// newRoles returns the sub-command that prints the permissions for the custom resources of a configuration.
func newRoles(p Process) *cobra.Command {
	f := &rolesFlags{shared: newShared(p)}
	cmd := &cobra.Command{
		Use:   "roles --config LOCATION",
		Short: "Print the permissions that the custom resources of a configuration need",
		Long: `Print the permissions that the custom resources of a configuration need, as a ClusterRole.

The configuration is a file, or configmap:NAMESPACE/NAME of a cluster. Bind the role to the ServiceAccount of the installation.`,
		Example: `  pod-reloader roles --config config.yaml | kubectl apply -f -`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			selection, _, err := f.manager.CompleteShared(f.environment)
			if err == nil && selection.Configuration.IsZero() {
				err = errNoConfiguration
			}
			if f.name == "" || len(content.IsPathSegmentName(f.name)) > 0 {
				err = errors.Join(fmt.Errorf("--name: %q is no name of a ClusterRole", f.name), err)
			}
			if err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), p, selection.Configuration)
		},
	}
	f.cluster.addKubeconfig(cmd.Flags())
	cmd.Flags().StringVar(&f.name, "name", "pod-reloader-referents", "`name` of the ClusterRole")
	f.manager.Share(cmd.Flags(), "config")
	return cmd
}

func (f *rolesFlags) run(ctx context.Context, p Process, location configuration.Location) error {
	found, err := f.read(ctx, p, location)
	if err != nil {
		return err
	}
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Rules:      rules(found.Referents),
	}
	text, err := yaml.Marshal(role)
	if err != nil {
		return fmt.Errorf("write the ClusterRole: %w", err)
	}
	_, err = p.Stdout.Write(text)
	return err
}

// read reads the configuration; a file needs no cluster.
func (f *rolesFlags) read(ctx context.Context, p Process, location configuration.Location) (configuration.Configuration, error) {
	if location.Path != "" {
		return refresh.Read(ctx, location, nil)
	}
	config, err := f.cluster.connect(p)
	if err != nil {
		return configuration.Configuration{}, err
	}
	return readConfiguration(ctx, config, location)
}

// rules returns one rule for the resources of each group that are read, and one for those that are written, in the order of
// the configuration.
func rules(definitions []referent.Definition) []rbacv1.PolicyRule {
	all := []rbacv1.PolicyRule{}
	add := func(d referent.Definition, verbs ...string) {
		same := func(r rbacv1.PolicyRule) bool { return r.APIGroups[0] == d.GVR.Group && slices.Equal(r.Verbs, verbs) }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Resources = append(all[i].Resources, d.GVR.Resource)
			return
		}
		all = append(all, rbacv1.PolicyRule{APIGroups: []string{d.GVR.Group}, Resources: []string{d.GVR.Resource}, Verbs: verbs})
	}
	for _, d := range definitions {
		add(d, "get", "list", "watch")
		if d.Publish {
			add(d, "patch")
		}
	}
	return all
}
