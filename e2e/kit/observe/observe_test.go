package observe_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

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

var cp *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Podless(),
		func(c *controlplane.ControlPlane) { cp = c }))
}

func deployment(namespace string) *appsv1.Deployment {
	labels, none := map[string]string{"app": "web"}, int32(0)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v0"}}},
			},
		},
	}
}

func patch(t *testing.T, namespace, text string) {
	t.Helper()
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	require.NoError(t, cp.Client().Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(text))))
}

// The observer sees every version, also of a template that is back to what it was an instant later.
func TestWatcherMissesNoVersion(t *testing.T) {
	t.Parallel()
	namespace := cp.Namespace(t)
	require.NoError(t, cp.Client().Create(t.Context(), deployment(namespace)))
	watcher := observe.New(t, cp.Admin(), namespace)
	web := observe.Deployment(namespace, "web")
	const there = 100
	for n := range there {
		patch(t, namespace, fmt.Sprintf(`[{"op":"add","path":"/spec/template/metadata/annotations","value":{"n":"%d"}}]`, n))
		patch(t, namespace, `[{"op":"remove","path":"/spec/template/metadata/annotations"}]`)
		patch(t, namespace, fmt.Sprintf(`[{"op":"add","path":"/metadata/labels","value":{"n":"%d"}}]`, n))
	}
	patch(t, namespace, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"v1"}]`)
	require.NoError(t, watcher.Sync(t.Context()))

	changes := watcher.Changes(web)
	require.Len(t, changes, 2*there+1, "labels of the workload are no change of the template")
	for n := range there {
		assert.Equal(t, map[string]string{"n": strconv.Itoa(n)}, changes[2*n].AnnotationsAfter)
		assert.Equal(t, map[string]string{"n": strconv.Itoa(n)}, changes[2*n+1].AnnotationsBefore)
	}
	last := changes[2*there]
	assert.Equal(t, "v0 v1", last.ImageBefore+" "+last.ImageAfter)
	assert.Contains(t, last.String(), "image: v0 -> v1")
	assert.Zero(t, watcher.Unseen(web))
	assert.Equal(t, 2*there+1, watcher.Total(namespace))
}

func TestRecreatedWorkloadHasANewHistory(t *testing.T) {
	t.Parallel()
	namespace := cp.Namespace(t)
	watcher := observe.New(t, cp.Admin(), namespace)
	web := observe.Deployment(namespace, "web")
	assert.Nil(t, watcher.Object(web))
	assert.Zero(t, watcher.Creations(web))
	for n := range 3 {
		object := deployment(namespace)
		require.NoError(t, cp.Client().Create(t.Context(), object))
		patch(t, namespace, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"v1"}]`)
		require.NoError(t, watcher.Sync(t.Context()))
		assert.Len(t, watcher.Changes(web), 1, "the first version of an object is no change")
		assert.Equal(t, n+1, watcher.Creations(web))
		require.NoError(t, cp.Client().Delete(t.Context(), object))
		require.NoError(t, watcher.Sync(t.Context()))
		assert.Nil(t, watcher.Object(web), "the barrier covers deletions")
	}
}

func TestTimeoutOfAWatcherNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	namespace := cp.Namespace(t)
	watcher := observe.New(t, cp.Admin(), namespace)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := watcher.AwaitTemplateChanges(ctx, observe.Deployment(namespace, "web"), 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Contains(t, err.Error(), "1 template changes of Deployment "+namespace+"/web")
}

// When the API server has lost its history, the observer says how much it may have missed.
func TestWatcherGoesOnAfterARestartOfTheAPIServer(t *testing.T) {
	t.Parallel()
	own := controlplane.New(t, controlplane.Options{Without: []string{controlplane.KWOK, controlplane.Scheduler, controlplane.ControllerManager}})
	namespace := own.Namespace(t)
	require.NoError(t, own.Client().Create(t.Context(), deployment(namespace)))
	watcher := observe.New(t, own.Admin(), namespace)
	web := observe.Deployment(namespace, "web")
	for n := 1; n <= 3; n++ {
		require.NoError(t, own.Component(controlplane.APIServer).Restart(t.Context()))
		object := deployment(namespace)
		image := []byte(fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"v%d"}]`, n))
		require.NoError(t, own.Client().Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, image)))
		require.NoError(t, watcher.Sync(t.Context()))
		assert.Len(t, watcher.Changes(web), n)
	}
	assert.Zero(t, watcher.Unseen(web))
}
