package edge_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// With annotations of Reloader, a change is not acted on without a Record. The user reads that with the write, and on the workload.
func TestRecordThatDoesNotFitBesideAnnotationsOfReloader(t *testing.T) {
	t.Parallel()
	const ignored = "changes are not acted on until the config-record is stored"
	s := fixture.New(t, shared)
	user, heard := s.Warned()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	filler := strings.Repeat("x", 256<<10-600)
	w := user.Deployment("web", fixture.Uses{Annotations: map[string]string{fixture.ReloaderConfigMaps: "app", "filler": filler}})
	assert.Contains(t, strings.Join(heard.Take(), "\n"), ignored)
	s.AwaitEvent(w, "RecordTooLarge", ignored)
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(0, "as the warning says", w)
	s.MergeWorkload(w, `{"metadata":{"annotations":{"filler":null}}}`)
	s.AwaitAdopted(w, "configmap/app")
	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(w, 1, "the Record fits")
}

// A Deployment that was adopted is deleted, its ReplicaSet is left, and it is created again under a label that excludes it for a moment.
func TestAdoptedDeploymentCreatedAgainBesideItsPods(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{Replicas: 1})
	s.AwaitRolledOut(w)
	s.MergeWorkload(w, `{"metadata":{"annotations":{"`+fixture.ReloaderConfigMaps+`":"app"}}}`)
	s.AwaitAdopted(w, "configmap/app")
	replicaSets := func() []appsv1.ReplicaSet {
		t.Helper()
		list := &appsv1.ReplicaSetList{}
		require.NoError(t, s.List(t.Context(), list, client.InNamespace(s.Namespace)))
		return list.Items
	}
	before := replicaSets()
	require.Len(t, before, 1)

	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: w.Name}}
	require.NoError(t, s.Delete(t.Context(), old, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.Await("the end of the Deployment", func() error {
		err := s.Client.Get(s.Context(), types.NamespacedName{Namespace: s.Namespace, Name: w.Name}, &appsv1.Deployment{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	require.NoError(t, s.Create(t.Context(), s.Manifest(w.Kind, w.Name, fixture.Uses{
		Replicas: 1, Annotations: map[string]string{fixture.ReloaderConfigMaps: "app"}, Labels: map[string]string{"pod-reloader.cs.sap.com/ignored": "true"},
	})))
	s.AwaitRolledOut(w)
	s.MergeWorkload(w, `{"metadata":{"labels":{"pod-reloader.cs.sap.com/ignored":null}}}`)
	s.AwaitAdopted(w, "configmap/app")
	s.Settled()
	after := replicaSets()
	require.Len(t, after, 1)
	assert.Equal(t, before[0].UID, after[0].UID, "it has its ReplicaSet back")
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "a change is noticed")
}
