package install_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// kubectl treats a warning of the API server as an error in the installation, so there was none, about pod security or anything else.
func TestManifestsCreateEachObjectWithoutWarning(t *testing.T) {
	t.Parallel()
	objects, err := installation.Render(t.Context(), shared.ControlPlane)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(applied), "\n")
	assert.Len(t, lines, len(objects), "kubectl prints a line for every object: %q", lines)
	for _, line := range lines {
		assert.True(t, strings.HasSuffix(line, " created"), "at the first time: %q", line)
	}
}

// It is not parallel, so that no other test changes the objects meanwhile.
func TestManifestsAppliedAgainChangeNothing(t *testing.T) {
	before := shared.declared(t)
	said, err := shared.Kubectl(patiently(t), "apply", "-k", shared.manifests, "--warnings-as-errors")
	require.NoError(t, err)
	for line := range strings.Lines(strings.TrimSpace(said)) {
		line = strings.TrimSpace(line)
		// kubectl replaces the selector of a PodDisruptionBudget as a whole and calls that a change, equal or not.
		if !strings.HasPrefix(line, "poddisruptionbudget.") {
			assert.True(t, strings.HasSuffix(line, " unchanged"), "at the second time: %q", line)
		}
	}
	assert.Equal(t, before, shared.declared(t), "to apply the manifests again changes nothing")
}

// declared are the objects of the manifests as they are in the cluster, without what controllers report in the status.
func (w *world) declared(t *testing.T) []map[string]any {
	t.Helper()
	objects, err := installation.Render(t.Context(), w.ControlPlane)
	require.NoError(t, err)
	declared := make([]map[string]any, 0, len(objects))
	for _, object := range objects {
		require.NoError(t, w.Client().Get(t.Context(), client.ObjectKeyFromObject(object), object))
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
		delete(object.Object, "status")
		declared = append(declared, object.Object)
	}
	return declared
}

func TestPodSecurity(t *testing.T) {
	t.Parallel()
	pods := &corev1.PodList{}
	require.NoError(t, shared.Client().List(t.Context(), pods, client.InNamespace(ours.Namespace)))
	require.Len(t, pods.Items, 2, "admitted under the profile `restricted`, which the API server enforces in the namespace")
	for _, pod := range pods.Items {
		assert.Equal(t, corev1.PodRunning, pod.Status.Phase, "pod %s", pod.Name)
		assert.True(t, *pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem, "pod %s can write to its root file system", pod.Name)
	}

	loose := pods.Items[0].DeepCopy()
	loose.ObjectMeta = metav1.ObjectMeta{Namespace: ours.Namespace, Name: "loose"}
	loose.Spec.NodeName = ""
	require.NoError(t, shared.Client().Create(t.Context(), loose.DeepCopy(), client.DryRunAll), "the same pod under another name")
	yes := true
	loose.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes
	err := shared.Client().Create(t.Context(), loose, client.DryRunAll)
	require.True(t, apierrors.IsForbidden(err), "the profile is enforced: %v", err)
	require.ErrorContains(t, err, "allowPrivilegeEscalation")
}

func TestServicesAndBudget(t *testing.T) {
	t.Parallel()
	for name, port := range map[string]string{ours.Name: "webhook", ours.Name + "-metrics": "metrics"} {
		service := client.ObjectKey{Namespace: ours.Namespace, Name: name}
		require.NoError(t, await(patiently(t), "the endpoints of "+name, func(ctx context.Context) error {
			pods, err := endpoints(ctx, shared.Client(), service, port)
			if err == nil && len(pods) != 2 {
				return fmt.Errorf("they are %v", pods)
			}
			return err
		}), "its selector and its port fit the pods")
	}
	require.NoError(t, await(patiently(t), "the PodDisruptionBudget to know the pods", func(ctx context.Context) error {
		budget := &policyv1.PodDisruptionBudget{}
		if err := shared.Client().Get(ctx, ours, budget); err != nil {
			return err
		}
		if s := budget.Status; s.CurrentHealthy != 2 || s.DisruptionsAllowed != 1 {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	}), "one replica may be evicted, the other stays")
}
