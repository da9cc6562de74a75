package install_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// The annotations, as the documentation names them.
const (
	configMaps   = "pod-reloader.cs.sap.com/configmaps"
	configHash   = "pod-reloader.cs.sap.com/config-hash"
	configRecord = "pod-reloader.cs.sap.com/config-record"
	lastReload   = "pod-reloader.cs.sap.com/last-reload"
)

// workload is a Deployment with one pod that depends on a ConfigMap.
func workload(namespace, name, configMap string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{configMaps: configMap},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1"}}},
			},
		},
	}
}

// user has workloads in a namespace, and an observer that records what happens to them.
type user struct {
	*testing.T
	world     *world
	namespace string
	watcher   *observe.Watcher
	canaries  *int
	// selected are the labels of the workloads that the user creates.
	selected map[string]string
}

func newUser(t *testing.T, w *world) *user {
	t.Helper()
	namespace := w.Namespace(t)
	return &user{T: t, world: w, namespace: namespace, watcher: observe.New(t, w.Admin(), namespace), canaries: new(int)}
}

// in is the user within a subtest.
func (u *user) in(t *testing.T) *user {
	t.Helper()
	copied := *u
	copied.T = t
	return &copied
}

// creates makes a ConfigMap and a Deployment of the same name that depends on it.
func (u *user) creates(name string) observe.Workload {
	u.Helper()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}, Data: map[string]string{"greeting": "hello"},
	}
	require.NoError(u, u.world.Client().Create(u.Context(), object))
	deployment := workload(u.namespace, name, name)
	deployment.Labels = u.selected
	require.NoError(u, u.world.Client().Create(u.Context(), deployment))
	return observe.Deployment(u.namespace, name)
}

// configures changes a ConfigMap.
func (u *user) configures(name, greeting string) {
	u.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"greeting":%q}}`, greeting))
	require.NoError(u, u.world.Client().Patch(u.Context(), object, patch))
}

// untilStamped makes writes, by their number, until one is stamped. One that is not is the last as well, if there was time for the
// webhook to answer.
func (u *user) untilStamped(write func(n int) (stamped bool)) bool {
	u.Helper()
	stamped := false
	poll.Repeat(u, attempts, "the API server may have gone on without the webhook", func(n int) bool {
		began := time.Now()
		stamped = write(n)
		return stamped || time.Since(began) < inTime
	})
	return stamped
}

// labels makes a write that does not concern pod-reloader.
func (u *user) labels(of observe.Workload, value string) {
	u.Helper()
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"written":%q}}}`, value))
	require.NoError(u, u.world.Client().Patch(u.Context(), object, patch), "a write must pass in any case")
}

// settled is the barrier for "and nothing else": pod-reloader has seen everything so far, which it shows by reloading,
// twice, a new workload for a change made just now, and the observer has seen every version.
func (u *user) settled() {
	u.Helper()
	for range 2 {
		*u.canaries++
		name := fmt.Sprintf("canary-%d", *u.canaries)
		canary := u.creates(name)
		u.awaitKnown(canary)
		u.configures(name, "goodbye")
		u.awaitChanges(canary, 1, "pod-reloader reloads what is made and changed while it runs")
	}
	u.seen()
}

// seen waits until the observer has seen every version so far.
func (u *user) seen() {
	u.Helper()
	require.NoError(u, u.watcher.Sync(patiently(u.T)))
}

// awaitKnown waits until pod-reloader has recorded the configuration of a workload's pods.
func (u *user) awaitKnown(of observe.Workload) {
	u.Helper()
	require.NoError(u, u.watcher.Await(patiently(u.T), "the Record of "+of.String(), func() error {
		object := u.watcher.Object(of)
		if object == nil {
			return fmt.Errorf("%s is not seen yet", of)
		}
		deployment := &appsv1.Deployment{}
		if err := u.world.Client().Get(u.Context(), client.ObjectKeyFromObject(object), deployment); err != nil {
			return err
		}
		if deployment.Annotations[configRecord] == "" && deployment.Spec.Template.Annotations[configHash] == "" {
			return fmt.Errorf("its annotations are %v", deployment.Annotations)
		}
		return nil
	}))
}

func (u *user) awaitChanges(of observe.Workload, n int, why string) {
	u.Helper()
	_, err := u.watcher.AwaitTemplateChanges(patiently(u.T), of, n)
	require.NoError(u, err, why)
}

// requireChanges requires how many template changes a workload has had so far; the observer has missed none.
func (u *user) requireChanges(of observe.Workload, n int, why string) {
	u.Helper()
	changes := u.watcher.Changes(of)
	require.Len(u, changes, n, "%s: %s\n%v", of, why, changes)
	require.Zero(u, u.watcher.Unseen(of), "versions of %s that the observer missed", of)
}
