package controlplane_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
)

func newConfigMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestAuditCountsRequests(t *testing.T) {
	t.Parallel()
	namespace := cp.Namespace(t)
	require.NoError(t, cp.Apply(t.Context(), readerRole(namespace)))
	id := controlplane.ServiceAccount(namespace, "reader")
	reader := clientFor(t, id)
	list := func() { _ = reader.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)) }
	awaitPermissions(t, reader, namespace)

	mark, err := cp.Audit().Mark()
	require.NoError(t, err)
	for range 100 {
		list()
	}
	_ = reader.Delete(t.Context(), newConfigMap(namespace, "forbidden"))
	requests, err := cp.Audit().Since(t.Context(), mark)
	require.NoError(t, err)

	requests = requests.By(id.User)
	assert.Equal(t, map[string]int{"list configmaps": 100, "delete configmaps": 1}, requests.Count())
	assert.Equal(t, requests, requests.In(namespace))
	assert.Len(t, requests.Within(time.Hour), 101, "it says how long each took")
	assert.Empty(t, requests.Within(time.Nanosecond))
	assert.Contains(t, requests[0].Reason, `RoleBinding "reader/`+namespace+`"`, "RBAC says what allowed it")
	denied := requests.Denied()
	require.Len(t, denied, 1)
	assert.Equal(t, http.StatusForbidden, denied[0].Code)
	assert.Equal(t, "forbid", denied[0].Decision)
	assert.Equal(t, "forbidden", denied[0].Name)
	assert.Equal(t, denied, requests.Writes())

	mark, err = cp.Audit().Mark()
	require.NoError(t, err)
	requests, err = cp.Audit().Since(t.Context(), mark)
	require.NoError(t, err)
	assert.Empty(t, requests.By(id.User), "what was answered before a mark is not after it")
}

func TestAuditRecordsBodies(t *testing.T) {
	t.Parallel()
	id := controlplane.Identity{User: "writer", Groups: controlplane.Admin().Groups}
	own := controlplane.New(t, controlplane.Options{
		Without: []string{controlplane.KWOK, controlplane.Scheduler},
		Audit:   controlplane.AuditPolicy{Users: []string{"other"}, Bodies: []string{id.User}},
	})
	config, err := own.Config(id)
	require.NoError(t, err)
	writer := newClient(t, config)
	namespace := own.Namespace(t)
	cm := newConfigMap(namespace, "settings")
	require.NoError(t, writer.Create(t.Context(), cm))
	patch := []byte(`{"data":{"key":"value"}}`)
	require.NoError(t, writer.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, patch)))
	require.NoError(t, writer.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))

	requests, err := own.Audit().All(t.Context())
	require.NoError(t, err)
	assert.Equal(t, requests, requests.By(id.User), "no other user is recorded")
	writes := requests.Writes()
	require.Len(t, writes, 2)
	assert.Equal(t, "settings", writes[0].Name, "of a create, too")
	assert.JSONEq(t, string(patch), string(writes[1].Body))
	assert.Contains(t, string(writes[1].Response), `"key":"value"`)
	for _, r := range requests {
		if !r.Writes() {
			assert.Empty(t, r.Body, r.What())
		}
	}

	t.Run("over a crash", func(t *testing.T) {
		own.Component(controlplane.APIServer).Kill()
		require.NoError(t, own.Component(controlplane.APIServer).Start(t.Context()))
		mark, err := own.Audit().Mark()
		require.NoError(t, err)
		require.NoError(t, writer.Delete(t.Context(), cm))
		requests, err := own.Audit().Since(t.Context(), mark)
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"delete configmaps": 1}, requests.Count())
	})
}

func TestAuditWithoutReads(t *testing.T) {
	t.Parallel()
	own := controlplane.New(t, controlplane.Options{
		Without: []string{controlplane.KWOK, controlplane.Scheduler, controlplane.ControllerManager},
		Audit:   controlplane.AuditPolicy{Users: []string{"writer"}, WithoutReads: true},
	})
	config, err := own.Config(controlplane.Identity{User: "writer", Groups: controlplane.Admin().Groups})
	require.NoError(t, err)
	writer := newClient(t, config)
	cm := newConfigMap(metav1.NamespaceDefault, "settings")
	require.NoError(t, writer.Create(t.Context(), cm))
	require.NoError(t, writer.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
	require.NoError(t, writer.List(t.Context(), &corev1.ConfigMapList{}))
	require.NoError(t, writer.Delete(t.Context(), cm))
	requests, err := own.Audit().All(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"create configmaps": 1, "delete configmaps": 1}, requests.Count())
}

func TestAuditCountsAWatchOnce(t *testing.T) {
	t.Parallel()
	namespace := cp.Namespace(t)
	id := controlplane.Identity{User: "watcher-" + namespace, Groups: controlplane.Admin().Groups}
	config, err := cp.Config(id)
	require.NoError(t, err)
	watcher, err := client.NewWithWatch(config, client.Options{})
	require.NoError(t, err)

	watch, err := watcher.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
	require.NoError(t, err)
	requests, err := cp.Audit().All(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, requests.By(id.User).Count()["watch configmaps"], "an open watch is no reason to wait")
	mark, err := cp.Audit().Mark()
	require.NoError(t, err)
	watch.Stop()
	require.NoError(t, watcher.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{}))
	requests, err = cp.Audit().Since(t.Context(), mark)
	require.NoError(t, err)
	assert.NotContains(t, requests.By(id.User).Count(), "watch configmaps", "its end is no new request")
}
