package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	// Each makes its controller known to the package controller.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

// workers is how many objects each controller treats at a time.
const workers = 5

// runControllers runs the controllers that were imported.
func runControllers(ctx context.Context, kubeconfig string) error {
	ctx, cancel := context.WithCancel(logf.NewContext(ctx, logf.Log, "controller"))
	defer cancel()
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return fmt.Errorf("connect the controllers: %w", err)
	}
	controllers := map[string]controller.Interface{}
	for name, construct := range controller.Known() {
		if controllers[name], err = construct(factory); err != nil {
			return fmt.Errorf("make the controller %s: %w", name, err)
		}
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("connect the controllers: %w", err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	ended := make(chan error, len(controllers))
	for name, c := range controllers {
		go func() {
			defer cancel()
			if err := c.Run(workers, ctx); err != nil {
				ended <- fmt.Errorf("run the controller %s: %w", name, err)
				return
			}
			ended <- nil
		}()
	}
	var failures error
	for range controllers {
		failures = errors.Join(failures, <-ended)
	}
	return failures
}
