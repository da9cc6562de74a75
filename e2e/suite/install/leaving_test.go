package install_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// TestLeaving installs pod-reloader, switches it off and on, removes it and installs it again, with the commands of the
// documentation, in a world of its own.
func TestLeaving(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := newUser(t, w)
	before, err := w.clusterScoped(t.Context())
	require.NoError(t, err)
	_, err = w.install(t.Context())
	require.NoError(t, err)
	if !t.Run("kill switch", func(t *testing.T) { killSwitch(u.in(t)) }) {
		return // it may be off now
	}
	t.Run("uninstall", func(t *testing.T) { uninstall(u.in(t), before) })
}

func killSwitch(u *user) {
	changed, same := u.creates("changed"), u.creates("same")
	u.awaitKnown(changed)
	u.awaitKnown(same)
	u.kubectl("delete", "mutatingwebhookconfiguration", ours.Name)
	u.kubectl("scale", "deployment", ours.Name, "-n", ours.Namespace, "--replicas", "0")
	require.NoError(u, u.world.kubelet.follow(patiently(u.T)))
	require.Empty(u, u.world.kubelet.running(), "nothing of pod-reloader runs")

	u.labels(same, "while-pod-reloader-is-off")
	meanwhile := u.creates("meanwhile")
	u.configures("changed", "good evening")
	u.seen()
	for _, of := range []struct {
		workload string
		changes  int
	}{{"changed", len(u.watcher.Changes(changed))}, {"same", len(u.watcher.Changes(same))}} {
		require.Zero(u, of.changes, "%s: nothing restarts", of.workload)
	}

	_, err := u.world.install(u.Context())
	require.NoError(u, err)
	u.awaitChanges(changed, 1, "the change of the meantime is picked up")
	u.awaitKnown(meanwhile)
	u.settled()
	u.requireChanges(changed, 1, "once")
	u.requireChanges(same, 0, "to be switched on again restarts nothing")
	u.requireChanges(meanwhile, 0, "nor what came meanwhile, which is adopted")
}

func uninstall(u *user, before sets.Set[string]) {
	stamped, adopted := u.creates("stamped"), u.creates("adopted")
	list := "adopted,kube-root-ca.crt"
	require.True(u, u.untilStamped(func(n int) bool {
		list += fmt.Sprintf(",further-%d", n) // what an earlier attempt has listed is known to the loop, and no other stamp
		return u.lists(adopted, list)
	}), "another list is another stamp")
	u.awaitChanges(adopted, 1, "which is another template")
	u.awaitPods(stamped, adopted)
	pods := u.pods()

	u.leave()
	u.world.requireGone(u.T)
	u.requireNothingLeft(before)
	u.labels(stamped, "after-pod-reloader-has-gone")
	u.cleanUp(stamped, adopted)
	u.seen()
	u.requireChanges(stamped, 0, "the workloads keep running as they are")
	u.requireChanges(adopted, 1, "the workloads keep running as they are")
	assert.Equal(u, pods, u.pods(), "the very pods")

	// The digest key went with the namespace: the configuration of the pods can no longer be compared.
	u.configures("adopted", "good evening")
	_, err := u.world.install(u.Context())
	require.NoError(u, err)
	u.settled()
	u.requireChanges(stamped, 0, "to be installed again restarts nothing")
	u.requireChanges(adopted, 1, "not even for a change of the meantime: without the old key all is adopted as it is found")

	u.configures("stamped", "good night")
	u.awaitChanges(stamped, 1, "and it works again")
	u.settled()
	u.requireChanges(stamped, 1, "once")
}

// lists edits the list of ConfigMaps of a workload and reports whether the write brought another stamp.
func (u *user) lists(of observe.Workload, names string) (stamped bool) {
	u.Helper()
	deployment := &appsv1.Deployment{}
	require.NoError(u, u.world.Client().Get(u.Context(), client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, deployment))
	before := deployment.Spec.Template.Annotations[configHash]
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, configMaps, names)
	require.NoError(u, u.world.Client().Patch(u.Context(), deployment, client.RawPatch(types.MergePatchType, patch)))
	return deployment.Spec.Template.Annotations[configHash] != before
}

// leave uninstalls as the documentation says.
func (u *user) leave() {
	u.Helper()
	u.kubectl("delete", "mutatingwebhookconfiguration", ours.Name)
	u.kubectl("delete", "-k", u.world.manifests, "--ignore-not-found")
	require.NoError(u, u.world.kubelet.follow(patiently(u.T)))
	require.Empty(u, u.world.kubelet.running(), "nothing of pod-reloader runs")
}

// cleanUp removes what is left on the workloads, as the documentation says.
func (u *user) cleanUp(of ...interface{ String() string }) {
	u.Helper()
	u.kubectl("annotate", "deployments,statefulsets,daemonsets,cronjobs", "--all", "--all-namespaces", configRecord+"-", lastReload+"-")
	list := &appsv1.DeploymentList{}
	require.NoError(u, u.world.Client().List(u.Context(), list, client.InNamespace(u.namespace)))
	require.GreaterOrEqual(u, len(list.Items), len(of))
	for _, d := range list.Items {
		assert.NotContains(u, d.Annotations, configRecord)
		assert.NotContains(u, d.Annotations, lastReload)
	}
}

func (u *user) kubectl(args ...string) {
	u.Helper()
	_, err := u.world.Kubectl(patiently(u.T), args...)
	require.NoError(u, err)
}

// awaitPods waits until workloads run.
func (u *user) awaitPods(of ...interface{ String() string }) {
	u.Helper()
	require.NoError(u, await(patiently(u.T), fmt.Sprintf("the pods of %v", of), func(ctx context.Context) error {
		list := &appsv1.DeploymentList{}
		if err := u.world.Client().List(ctx, list, client.InNamespace(u.namespace)); err != nil {
			return err
		}
		for _, d := range list.Items {
			s := d.Status
			if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != 1 || s.ReadyReplicas != 1 || s.Replicas != 1 {
				return fmt.Errorf("%s has %+v", d.Name, s)
			}
		}
		return nil
	}))
}

// pods are the UIDs of the user's pods.
func (u *user) pods() []string {
	u.Helper()
	list := &corev1.PodList{}
	require.NoError(u, u.world.Client().List(u.Context(), list, client.InNamespace(u.namespace)))
	var ids []string
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			ids = append(ids, string(pod.UID))
		}
	}
	slices.Sort(ids)
	return ids
}

// requireGone requires that no object of the manifests exists.
func (w *world) requireGone(t *testing.T) {
	t.Helper()
	objects, err := installation.Render(t.Context(), w.ControlPlane)
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, await(patiently(t), object.GetKind()+" "+object.GetName()+" to be gone", func(ctx context.Context) error {
			err := w.Client().Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there (%w)", err)
		}))
	}
}

// requireNothingLeft waits until there is nothing cluster-scoped that was not there before.
func (u *user) requireNothingLeft(before sets.Set[string]) {
	u.Helper()
	require.NoError(u, await(patiently(u.T), "everything cluster-scoped to be gone", func(ctx context.Context) error {
		now, err := u.world.clusterScoped(ctx)
		if left := now.Difference(before); left.Len() > 0 {
			return fmt.Errorf("there is still %v", sets.List(left))
		}
		return err
	}))
}

// clusterScoped are all objects that have no namespace, as resource/name.
func (w *world) clusterScoped(ctx context.Context) (sets.Set[string], error) {
	finder, err := discovery.NewDiscoveryClientForConfig(w.Admin())
	if err != nil {
		return nil, err
	}
	reader, err := metadata.NewForConfig(w.Admin())
	if err != nil {
		return nil, err
	}
	kinds, err := finder.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("ask which kinds there are: %w", err)
	}
	found := sets.New[string]()
	for _, group := range kinds {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range group.APIResources {
			if kind.Namespaced || !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "watch") {
				continue
			}
			list, err := reader.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.Name, err)
			}
			for _, item := range list.Items {
				found.Insert(kind.Name + "/" + item.Name)
			}
		}
	}
	return found, nil
}
