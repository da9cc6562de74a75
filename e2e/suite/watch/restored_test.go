package watch_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pod-reloader/pod-reloader/pkg/listwatch"
	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// etcd is restored from a backup, and is behind the watches then. What was deleted since the backup is there again, and what was created
// since is gone; that and each change is seen at once, and not when the versions have caught up.
func TestRestoreFromABackup(t *testing.T) {
	ns := cp.Namespace(t)
	apply(t, configMap(ns, "a", "1"), configMap(ns, "deleted", "1"))
	restore, err := cp.Backup(t.Context())
	require.NoError(t, err)
	bulk := startBulk(t, (&line{}).client(t), watch.Config{GVR: configMaps, Namespace: ns, IndexBy: byName})
	values := followOne(t, &line{}, ns)
	await(t, "1", values.last)

	remove(t, configMaps, ns, "deleted")
	for n := range 30 {
		apply(t, configMap(ns, "created", strconv.Itoa(n)))
	}
	apply(t, configMap(ns, "a", "2"))
	await(t, []string{"a", "created"}, names(bulk))
	await(t, "2", values.last)

	require.NoError(t, restore(t.Context()))
	await(t, []string{"a", "deleted"}, names(bulk))
	await(t, "1", values.last)
	apply(t, configMap(ns, "a", "3"))
	await(t, "3", values.last)
	await(t, "3", func() string {
		value, _, _ := unstructured.NestedString(bulk.Store().Object(ns, "a").Object, "data", "key")
		return value
	})
}

// The API server has reached the versions of the watches again before the watchers can connect. It would accept their watches, and what the
// restore has brought back, and what was written since, would never come.
func TestRestoreThatIsWrittenToBeforeTheWatchersReturn(t *testing.T) {
	ns := cp.Namespace(t)
	apply(t, configMap(ns, "a", "1"), configMap(ns, "deleted", "1"))
	restore, err := cp.Backup(t.Context())
	require.NoError(t, err)
	l := &line{}
	bulk := startBulk(t, l.client(t), watch.Config{GVR: configMaps, Namespace: ns, IndexBy: byName})
	values := followOne(t, l, ns)
	for n := range 100 { // more than the API server writes at its start
		apply(t, configMap(ns, "lost", strconv.Itoa(n)))
	}
	apply(t, configMap(ns, "a", "2"))
	remove(t, configMaps, ns, "deleted")
	await(t, []string{"a", "lost"}, names(bulk))
	await(t, "2", values.last)

	l.Cut(t)
	require.NoError(t, restore(t.Context()))
	for n := range 200 {
		apply(t, configMap(ns, "created", strconv.Itoa(n)))
	}
	l.Mend()
	await(t, []string{"a", "created", "deleted"}, names(bulk))
	await(t, "1", values.last)
}

// values are what a followed ConfigMap has had.
type values struct {
	mu  sync.Mutex
	now string
}

func (v *values) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Put takes a state of the ConfigMap.
func (v *values) Put(m *corev1.ConfigMap) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = m.Data["key"]
}

// Remove takes its deletion.
func (v *values) Remove(*corev1.ConfigMap) { v.Put(&corev1.ConfigMap{}) }

// Replace takes a listing.
func (v *values) Replace(all []*corev1.ConfigMap, _ string) {
	v.Remove(nil)
	for _, m := range all {
		v.Put(m)
	}
}

// followOne follows the ConfigMap "a" as the program follows its own objects.
func followOne(t *testing.T, l *line, namespace string) *values {
	t.Helper()
	clients, err := kubernetes.NewForConfig(l.config())
	require.NoError(t, err)
	one := listwatch.One(clients.CoreV1().RESTClient(), "configmaps", namespace, "a")
	v := &values{}
	loop := listwatch.Loop[*corev1.ConfigMap]{
		Name: "test", Kind: "ConfigMap", List: one.ListWithContextFunc, Watch: one.WatchFuncWithContext, Sink: v, Log: logr.Discard(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { loop.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return v
}
