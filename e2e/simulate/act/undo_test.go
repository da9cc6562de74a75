package act

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// owned is the metadata of a revision of cart or another workload.
func owned(by world.Object, app string, annotations world.Object) world.Object {
	return world.Object{
		"labels":      world.Object{"app": app},
		"annotations": annotations,
		"ownerReferences": []any{
			world.Object{"uid": world.Section(by, "metadata")["uid"], "controller": true},
		},
	}
}

// replicaSet stores one of revision n of cart.
func (f *recorder) replicaSet(n int) {
	live := f.get(cart)
	template := f.decode(f.encode(world.Section(live, "spec", "template")))
	world.Section(template, "metadata", "labels")["pod-template-hash"] = fmt.Sprint("hash", n)
	containers := world.Section(template, "spec")["containers"].([]any)
	containers[0].(world.Object)["image"] = fmt.Sprintf("example.com/cart:%d", n)
	f.put("replicasets/shop/cart-"+strconv.Itoa(n), world.Object{
		"metadata": owned(live, "cart", world.Object{
			revisionAnnotation: strconv.Itoa(n), "deployment.kubernetes.io/desired-replicas": "9",
			listOfConfigMaps: fmt.Sprint("list-", n), Prefix + "config-hash": "old",
		}),
		"spec": world.Object{"template": template},
	})
}

func TestUndoOfADeploymentBringsTemplateAndAnnotationsBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ back, image string }{
		"previous revision": {"1", "example.com/cart:9"},
		"an earlier one":    {"2", "example.com/cart:2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRecorder(t)
			for _, n := range []int{2, 9, 10} { // numbers, not texts, have an order
				f.replicaSet(n)
			}
			f.put("replicasets/shop/orphan", world.Object{
				"metadata": world.Object{"labels": world.Object{"app": "cart"}, "annotations": world.Object{revisionAnnotation: "11"}},
			})
			annotations := world.Section(f.get(cart), "metadata", "annotations")
			annotations[revisionAnnotation] = "10"
			annotations[Prefix+"last-reload"] = "gone"
			last := annotations[corev1.LastAppliedConfigAnnotation]

			require.NoError(t, f.do("undo", cart, "back", test.back))
			assert.Equal(t, []string{"GET", "GET", "PATCH"}, f.methods())
			assert.Equal(t, "application/json-patch+json", f.requests[2].ContentType)
			containers := world.Section(f.get(cart), "spec", "template", "spec")["containers"].([]any)
			assert.Equal(t, test.image, containers[0].(world.Object)["image"])
			assert.Equal(t, world.Object{"app": "cart"}, world.Section(f.get(cart), "spec", "template", "metadata", "labels"))
			assert.Equal(t, world.Object{
				corev1.LastAppliedConfigAnnotation: last, revisionAnnotation: "10",
				listOfConfigMaps: "list-" + test.image[len("example.com/cart:"):], Prefix + "config-hash": "old",
			}, world.Annotations(f.get(cart)))
		})
	}
}

func TestUndoIsSkippedWhereKubectlRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]func(f *recorder){
		"no earlier revision": func(f *recorder) { f.replicaSet(1) },
		"paused": func(f *recorder) {
			f.replicaSet(1)
			f.replicaSet(2)
			world.Section(f.get(cart), "spec")["paused"] = true
		},
		"the template is that already": func(f *recorder) {
			f.replicaSet(1) // version 1 is live
			f.replicaSet(2)
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRecorder(t)
			prepare(f)
			require.ErrorIs(t, f.do("undo", cart, "back", "1"), ErrSkipped)
			assert.NotContains(t, f.methods(), "PATCH")
		})
	}
}

func TestUndoOfAStatefulSetSendsTheDataOfTheRevision(t *testing.T) {
	t.Parallel()
	const store = "statefulsets/shop/store"
	f := newRecorder(t)
	live := f.get(store)
	for n := 1; n <= 3; n++ {
		template := f.decode(f.encode(world.Section(live, "spec", "template")))
		template["$patch"] = "replace"
		annotations := world.Object{Prefix + "config-hash": fmt.Sprint("hash", n)}
		world.Section(template, "metadata")["annotations"] = annotations
		f.put(fmt.Sprintf("controllerrevisions/shop/store-%d", n), world.Object{
			"metadata": owned(live, "store", nil), "revision": int64(n),
			"data": world.Object{"spec": world.Object{"template": template}},
		})
	}
	require.NoError(t, f.do("undo", store, "back", "2"))
	assert.Equal(t, strategicPatch, f.requests[2].ContentType)
	template := world.Section(f.get(store), "spec", "template")
	assert.Equal(t, world.Object{Prefix + "config-hash": "hash1"}, world.Annotations(template))
	assert.NotContains(t, template, "$patch")
	assert.Contains(t, world.Annotations(f.get(store)), listOfConfigMaps, "only the template is undone")
}
