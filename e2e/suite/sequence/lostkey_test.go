package sequence_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// The digest key is lost, and the workloads are adopted under a new one: their templates keep a hash that cannot be compared any
// more. They are excluded and included again. A change of the configuration, meanwhile or later, is one restart.
func digestKeyLostBeforeAnExclusion(t *testing.T, in *installation.Installation) {
	t.Helper()
	d := newDowntime(t, in)
	uses := fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1}
	excluded := uses
	excluded.Labels = map[string]string{"pod-reloader.cs.sap.com/ignored": "true"}
	patched, put := d.Deployment("patched", uses), d.Deployment("put", uses)
	d.AwaitKnown(patched)
	d.AwaitKnown(put)
	exclude := func() {
		t.Helper()
		d.MergeWorkload(patched, `{"metadata":{"labels":{"pod-reloader.cs.sap.com/ignored":"true"}}}`)
		require.NoError(t, d.Update(t.Context(), d.Manifest(put.Kind, put.Name, excluded)))
		d.Settled()
	}
	include := func() {
		t.Helper()
		d.MergeWorkload(patched, `{"metadata":{"labels":{"pod-reloader.cs.sap.com/ignored":null}}}`)
		require.NoError(t, d.Update(t.Context(), d.Manifest(put.Kind, put.Name, uses)))
	}

	require.NoError(t, in.StopAll(d.Patiently()))
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace(), Name: "pod-reloader-digest-key"}}
	require.NoError(t, d.Delete(t.Context(), key))
	d.start()
	d.AwaitEvent(patched, "RecordAdopted", "is lost")
	d.AwaitEvent(put, "RecordAdopted", "is lost")
	exclude()
	include()
	d.AwaitExactly(0, "neither the loss of the key nor the exclusion is a change", patched, put)
	d.SetConfigMap("app", "key", "2")
	d.AwaitExactly(1, "a change after the exclusion", patched, put)
	exclude()
	d.SetConfigMap("app", "key", "3")
	d.AwaitExactly(1, "it is excluded", patched, put)
	include()
	d.AwaitExactly(2, "a change during the exclusion", patched, put)
}
