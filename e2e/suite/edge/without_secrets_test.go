package edge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// configMapsOnly takes the permissions on Secrets away, as the component without-secrets does, and finds that they are not needed.
func configMapsOnly(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	in := s.Installation
	cp := in.ControlPlane()
	objects, err := installation.Render(t.Context(), cp, "without-secrets")
	require.NoError(t, err)
	for _, replica := range in.Replicas() {
		require.NoError(t, in.RemoveReplica(s.Patiently(), replica))
	}
	for _, object := range objects {
		if object.GetKind() == "ClusterRole" || object.GetKind() == "Role" {
			text, err := json.Marshal(object.Object)
			require.NoError(t, err)
			require.NoError(t, cp.Apply(t.Context(), string(text)))
		}
	}
	as := impersonated(t, in)
	s.Secret("left", fixture.Data{"key": "1"})
	s.ConfigMap("only", fixture.Data{"key": "1"})
	s.Await("the permission to be gone", func() error {
		err := as.Get(s.Context(), types.NamespacedName{Namespace: s.Namespace, Name: "left"}, &corev1.Secret{})
		if apierrors.IsForbidden(err) {
			return nil
		}
		return assert.AnError
	})
	_, err = in.AddReplica(s.Patiently(), installation.ReplicaOptions{Args: []string{"--secrets=false"}})
	require.NoError(t, err)

	user, heard := s.Warned()
	w := user.Deployment("only", fixture.Uses{ConfigMaps: []string{"only"}, Secrets: []string{"left"}})
	assert.Contains(t, strings.Join(heard.Take(), "\n"), "this installation does not handle secrets (--secrets=false)")
	s.AwaitAdopted(w, "configmap/only")
	s.SetSecret("left", "key", "2")
	s.AwaitExactly(0, "Secrets are not handled", w)
	s.SetConfigMap("only", "key", "2")
	s.AwaitExactly(1, "ConfigMaps are", w)
	user.Deployment("auto", fixture.Uses{Annotations: map[string]string{"configmap.reloader.stakater.com/reload": "only"}})
	why, err := in.WhyAs(t.Context(), in.Identity(), "deployment/auto", "-n", s.Namespace, "--secrets=false")
	require.NoError(t, err)
	assert.Contains(t, why, "configmap/only")
	assert.NotContains(t, why, "Problem: ", "it needs no permission on Secrets either")
	fixture.AssertNothingDenied(t, in)
	everyPermissionIsUsed(t, in, objects)
}
