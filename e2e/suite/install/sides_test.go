package install_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// workloadChangesSides divides the workloads of a namespace between two releases by the label side. The releases have different digest
// keys, so that neither can compare what the other one has recorded. A workload changes sides, and back.
func workloadChangesSides(t *testing.T, w *world) {
	t.Helper()
	key := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ours.Namespace, Name: "key-of-b"},
		StringData: map[string]string{"0001": rand.Text() + rand.Text()},
	}
	require.NoError(t, w.Client().Create(t.Context(), key))
	w.installRelease(t, "a", "objectSelector.matchLabels.side=a")
	w.installRelease(t, "b", "objectSelector.matchLabels.side=b", "digestKey.existingSecret="+key.Name)

	both := newUser(t, w)
	a, b := both.on("a"), both.on("b")
	web := a.creates("web")
	a.awaitKnown(web)
	a.configures("web", "good evening")
	a.reloadedOnce(web, 1)

	for n, side := range []*user{b, a} {
		mark, err := w.Audit().Mark()
		require.NoError(t, err)
		side.takes(web)
		a.settled()
		b.settled()
		both.requireChanges(web, 1+n, "another release handles the workload now, which is no change")
		requests, err := w.Audit().Since(patiently(t), mark)
		require.NoError(t, err)
		writes := requests.In(both.namespace).Writes().Where(func(r controlplane.Request) bool {
			return r.Resource == "deployments" && r.Name == web.Name && r.Verb == "patch" && r.User != controlplane.Admin().User
		})
		assert.LessOrEqual(t, len(writes), 1, "the other release adopts the workload, and this one writes nothing: %v", writes)
		both.configures("web", fmt.Sprintf("good night %d", n))
		a.settled()
		b.reloadedOnce(web, 2+n)
	}
}

// on is the user whose workloads have the label side.
func (u *user) on(side string) *user {
	u.Helper()
	copied := *u
	copied.selected = map[string]string{"side": side}
	return &copied
}

// takes gives a workload the labels of the user's workloads.
func (u *user) takes(of observe.Workload) {
	u.Helper()
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"side":%q}}}`, u.selected["side"]))
	require.NoError(u, u.world.Client().Patch(u.Context(), object, patch))
}
