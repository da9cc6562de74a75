package controlplane_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

func clientFor(t *testing.T, id controlplane.Identity) client.Client {
	t.Helper()
	config, err := cp.Config(id)
	require.NoError(t, err)
	assert.Negative(t, config.QPS, "no client-side rate limit")
	return newClient(t, config)
}

// readerRole lets the service account "reader" read ConfigMaps in its namespace, and nothing else.
func readerRole(namespace string) string {
	return `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: ` + namespace + `}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: ` + namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: reader, namespace: ` + namespace + `}
`
}

// awaitPermissions waits until the API server has seen the role, which it watches, too.
func awaitPermissions(t *testing.T, reader client.Client, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, poll.Until(ctx, "the permissions of the reader", 100*time.Millisecond, func(ctx context.Context) error {
		return reader.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
	}))
}

func TestAKubeconfigIsItsIdentity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, cp.WriteKubeconfig(path, controlplane.Identity{User: "jane", Groups: []string{"devs"}}))
	out, err := cp.Kubectl(t.Context(), "--kubeconfig", path, "auth", "whoami", "-o", "yaml")
	require.NoError(t, err)
	assert.Contains(t, out, "username: jane")
	assert.Contains(t, out, "- devs")

	_, err = cp.Kubectl(t.Context(), "--kubeconfig", path, "get", "nodes")
	require.ErrorContains(t, err, `User "jane" cannot list resource "nodes"`)
}
