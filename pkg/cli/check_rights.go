package cli

import (
	"context"
	"errors"
	"fmt"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/chain/rights"
	"github.com/pod-reloader/pod-reloader/pkg/options"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// rights checks those on the custom resources of the configuration. The error names the missing ones.
func (f *checkFlags) rights(ctx context.Context, config *rest.Config, s options.Selection) error {
	found, err := readConfiguration(ctx, config, s.Configuration)
	if err != nil {
		return err
	}
	reviews, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	ask := rights.Own(reviews)
	if f.account.Name != "" {
		ask = rights.OfServiceAccount(reviews, f.account.Namespace, f.account.Name)
	}
	missing, err := rights.Missing(ctx, ask, referent.Rights(found.Referents, s.Scope.Namespaces))
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return errors.New(rights.Describe(missing, s.Configuration.String()))
	}
	fmt.Fprintf(f.out, "all rights on %s are granted\n", reference.Count(len(found.Referents), "custom resource"))
	return nil
}
