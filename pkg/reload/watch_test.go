package reload

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A standby remembers which workloads there are, and queues them when it becomes the leader, not before: nobody would take
// out what comes and goes meanwhile.
func TestStandbyQueuesNothing(t *testing.T) {
	t.Parallel()
	keys, err := annotation.NewKeys(annotation.DefaultPrefix)
	require.NoError(t, err)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Key]())
	t.Cleanup(q.ShutDown)
	l := &loop{
		now: time.Now, index: newIndex(), memory: newMemory(), watches: newWatches(), recent: newRecent(0),
		opts: Options{Reader: stamp.Reader{Keys: keys, Dialects: []annotation.Dialect{annotation.SAP{Keys: keys}}}},
	}
	l.queue.Store(&queue{q})
	kind := workload.Builtin()[1]
	h := workloadHandler{l, &watched{kind: kind}}
	stays, goes := deployment(kind, "stays"), deployment(kind, "goes")
	h.OnAdd(stays, true)
	h.OnAdd(goes, false)
	h.OnDelete(goes)
	l.configChanged(configstate.Event{Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}, Received: time.Now()})
	assert.Zero(t, q.Len(), "a standby")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, l.lead(ended))
	require.Equal(t, 1, q.Len(), "the leader treats what there is")
	key, _ := q.Get()
	assert.Equal(t, Key{Kind: kind.ID(), Namespace: "shop", Name: "stays"}, key)
	q.Done(key)

	h.OnAdd(goes, false)
	assert.Equal(t, 1, q.Len(), "and what comes")

	l.addAll()
	assert.Equal(t, 2, q.Len(), "all, when the digest keys have changed")
}

func deployment(kind workload.Kind, name string) *unstructured.Unstructured {
	u := emptyObject(kind)
	u.SetNamespace("shop")
	u.SetName(name)
	u.SetAnnotations(map[string]string{annotation.DefaultPrefix + "configmaps": "app"})
	return u
}
