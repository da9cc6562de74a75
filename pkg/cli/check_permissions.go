package cli

import (
	"context"
	"errors"
	"fmt"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/chain/permissions"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// permissions checks those on the custom resources of the configuration. The error names the missing ones.
func (f *checkFlags) permissions(ctx context.Context, config *rest.Config, s options.Selection) error {
	found, err := readConfiguration(ctx, config, s.Configuration)
	if err != nil {
		return err
	}
	reviews, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	ask := permissions.Own(reviews)
	if f.account.Name != "" {
		ask = permissions.OfServiceAccount(reviews, f.account.Namespace, f.account.Name)
	}
	missing, err := permissions.Missing(ctx, ask, referent.Permissions(found.Referents, s.Scope.Namespaces))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return errors.New(permissions.Describe(missing, s.Configuration.String()))
	}
	fmt.Fprintf(f.out, "all permissions on %s are granted\n", reference.Count(len(found.Referents), "custom resource"))
	return nil
}
