package act

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const storeSet = "statefulsets/shop/store"

func TestUpdateStrategyIsSet(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	for _, tc := range []struct{ on, to, want string }{
		{storeSet, "partition=2", `{"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}`},
		{storeSet, "OnDelete", `{"type": "OnDelete"}`},
		{storeSet, "RollingUpdate", `{"type": "RollingUpdate"}`},
		{"daemonsets/shop/agent", "OnDelete", `{"type": "OnDelete"}`},
	} {
		require.NoError(t, f.do(SetUpdateStrategy, tc.on, "to", tc.to))
		assert.JSONEq(t, tc.want, string(f.encode(world.Section(f.get(tc.on), "spec", "updateStrategy"))), tc.to)
	}
}

func TestUpdateStrategyIsChecked(t *testing.T) {
	t.Parallel()
	c := Catalogue()
	for _, tc := range []struct{ on, to string }{
		{storeSet, ""},
		{storeSet, "Recreate"},
		{storeSet, "partition=-1"},
		{storeSet, "partition=x"},
		{storeSet, "partition="},
		{"daemonsets/shop/agent", "partition=1"},
		{"deployments/shop/cart", "OnDelete"},
	} {
		s := history.Step{Do: SetUpdateStrategy, On: tc.on, With: map[string]string{"to": tc.to}}
		assert.Error(t, mustFind(t, c, SetUpdateStrategy).Check(s), "%s of %s", tc.to, tc.on)
	}
}

func TestPodIsDeletedByItsPlace(t *testing.T) {
	t.Parallel()
	f := newRecorder(t)
	require.ErrorIs(t, f.do(DeletePod, storeSet, "pod", "0"), ErrSkipped, "it has none")
	own := func(on string) []any {
		return []any{world.Object{"uid": world.Text(f.get(on), "metadata", "uid"), "controller": true}}
	}
	add := func(on, app, name, node string) {
		f.objects["/api/v1/namespaces/shop/pods/"+name] = world.Object{
			"metadata": world.Object{"name": name, "labels": world.Object{"app": app}, "ownerReferences": own(on)},
			"spec":     world.Object{"nodeName": node},
		}
	}
	add(storeSet, "store", "store-0", "b")
	add(storeSet, "store", "store-1", "a")
	add("daemonsets/shop/agent", "agent", "agent-x", "b")
	add("daemonsets/shop/agent", "agent", "agent-y", "a")
	add("deployments/shop/cart", "store", "store-alike", "a")
	for _, tc := range []struct{ on, pod, want string }{
		{storeSet, "1", "store-1"}, {storeSet, "5", "store-0"}, {"daemonsets/shop/agent", "0", "agent-y"},
	} {
		require.NoError(t, f.do(DeletePod, tc.on, "pod", tc.pod))
		last := f.requests[len(f.requests)-1]
		assert.Equal(t, http.MethodDelete, last.Method)
		assert.Equal(t, "/api/v1/namespaces/shop/pods/"+tc.want, last.Path)
	}
}
