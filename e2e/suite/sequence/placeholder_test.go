package sequence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// A Secret is created with a placeholder and soon gets its content, as cert-manager and operators do. Pods that waited for
// it may have started with the placeholder. Its creation is therefore noted at once, and not when all is quiet: the change
// that follows is one.
func requiredSecretThatChangesRightAfterItsCreation(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	const ungated, quickly = "--refractory=0s", "--shutdown-grace-period=200ms"
	in := installation.NewInTurn(t, cp, installation.Options{
		Replicas: 1, Patient: true, LongLease: true, Args: []string{ungated, quickly, "--settle=1h", "--settle-max=1h"},
	})
	s := fixture.New(t, in)
	w := s.Deployment("web", fixture.Uses{Secrets: []string{"tls"}, Replicas: 1})
	s.Secret("tls", fixture.Data{"tls.crt": "placeholder"})
	s.AwaitWorkload(w, "the Record of the placeholder, which nothing holds back", func(o *unstructured.Unstructured) bool {
		return strings.Contains(o.GetAnnotations()[fixture.ConfigRecord], "secret/tls~")
	})
	s.SetSecret("tls", "tls.crt", "the certificate")

	require.NoError(t, in.RemoveReplica(t.Context(), in.Replicas()[0]))
	_, err := in.AddReplica(t.Context(), installation.ReplicaOptions{Args: []string{ungated, quickly, "--settle=0s"}})
	require.NoError(t, err)
	s.AwaitExactly(1, "the pods may run with the placeholder", w)
}
