package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// quietly ends a history in which the law "prompt" has nothing to say, as faults excuse everything until the end.
func quietly(happens func(s *harness)) func(s *harness) {
	return func(s *harness) {
		happens(s)
		s.wait(20 * time.Minute)
		for _, w := range s.oracle.all {
			w.due.reported = true
		}
		s.quiet()
	}
}

// undoneToOrphan deletes a Deployment without its ReplicaSet, creates it again with another template, and rolls it back to that of the
// ReplicaSet, whose new pod does not start.
func undoneToOrphan(s *harness) {
	s.begin()
	left := world.Key{Resource: world.ReplicaSets, Namespace: "shop", Name: "rs-" + s.pods[0].Name}
	s.remove(user, cart)
	ownedBy := func(uid string, key world.Key) {
		s.change(nil, key, nil, edited(s.objects[key], func(o world.Object) {
			world.Section(o, "metadata")["ownerReferences"] = []any{world.Object{"kind": "Deployment", "uid": uid, "controller": true}}
		}))
	}
	const again = "uid-cart-again"
	s.sends("create", cart, edited(manifest(cart, "two"), func(o world.Object) { world.Section(o, "metadata")["uid"] = again }), "a")
	ownedBy(again, left)
	template := world.Section(s.objects[cart], "spec", "template")
	set := world.Key{Resource: world.ReplicaSets, Namespace: "shop", Name: "rs-two"}
	s.change(nil, set, nil, world.Object{"metadata": world.Object{"uid": "uid-rs-two"}, "spec": world.Object{"template": template}})
	ownedBy(again, set)
	s.podOf(set, "cart-two", template)
	s.change(nil, s.pods[0], nil, nil)
	s.wait(time.Minute)
	before := world.Section(s.objects[left], "spec", "template")
	s.edit(cart, func(o world.Object) { world.Section(o, "spec")["template"] = before })
	pending := s.podOf(left, "cart-one", before)
	s.change(nil, pending, nil, edited(s.objects[pending], func(o world.Object) { o["status"] = world.Object{"phase": "Pending"} }))
}

func TestCurrent(t *testing.T) {
	t.Parallel()
	change := func(s *harness) {
		s.begin()
		s.set(configMap("app"), "2")
	}
	runLaw(t, "current", map[string]lawCase{
		"all is well":     {because: "nothing happened", happens: quietly(func(s *harness) { s.begin() })},
		"never restarted": {want: "current/modified", because: "a missed change", happens: quietly(unjudged(change))},
		"restarted": {because: "it runs with the new content", happens: quietly(func(s *harness) {
			change(s)
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		})},
		"rollout paused": {because: "the template is right, the pods wait", happens: quietly(func(s *harness) {
			change(s)
			s.wait(time.Second)
			s.edit(cart, func(o world.Object) { world.Section(o, "spec")["paused"] = true })
			s.reload(cart, "b", "configmap/app modified")
		})},
		"rollout stuck": {because: "the template is right, and a pod does not start", happens: quietly(func(s *harness) {
			change(s)
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
			old := s.objects[s.pods[0]]
			s.change(nil, world.Key{Resource: world.Pods, Namespace: "shop", Name: "cart-2"}, nil, edited(old, func(o world.Object) {
				world.Section(o, "metadata")["uid"] = "uid-cart-2"
				o["status"] = world.Object{"phase": "Pending"}
			}))
		})},
		"rollout stuck in a ReplicaSet that an earlier Deployment has left": {because: "a pod does not start", happens: quietly(undoneToOrphan)},
		"rollout that nothing keeps": {want: "current/rollout", because: "the pods do not wait", happens: quietly(func(s *harness) {
			change(s)
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
		})},
		"held": {because: "pods could not start", happens: quietly(func(s *harness) {
			s.begin()
			s.set(configMap("extra"), "2")
			s.remove(user, configMap("app"))
		})},
		"deleted object that is not required": {want: "current/deleted", because: "a missed change", happens: quietly(unjudged(func(s *harness) {
			s.begin()
			s.remove(user, configMap("extra"))
		}))},
		"created object that is not required": {want: "current/created", because: "a missed change", happens: quietly(unjudged(func(s *harness) {
			s.set(configMap("app"), "1")
			s.sends("create", cart, manifest(cart, "one"), "a")
			s.rollout(cart)
			s.wait(time.Minute)
			s.set(configMap("extra"), "1")
		}))},
		"excluded": {because: "it is not looked after", happens: quietly(func(s *harness) {
			s.begin()
			s.edit(cart, excludedBy("ignored"))
			s.set(configMap("app"), "2")
		})},
		"pods that started in between": {because: "the program knows nothing of pods", happens: quietly(func(s *harness) {
			change(s)
			s.rollout(cart)
			s.set(configMap("app"), "1")
		})},
		"adopted with the new content": {options: Options{Direct: true}, because: "the first sight was after the change", happens: quietly(func(s *harness) {
			s.set(configMap("app"), "1")
			s.sends("create", cart, manifest(cart, "one"), "")
			s.rollout(cart)
			s.set(configMap("app"), "2")
		})},
		"managed annotations taken away while the webhook was away": {because: "nothing was known any more", happens: quietly(func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-record", "") })
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+"config-record", "v1:x") })
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
		})},
		"key lost": {because: "it cannot be compared", happens: quietly(func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("two")
			s.set(configMap("app"), "2")
		})},
		"rolled back to old pods": {want: "current/modified/undone", because: "the webhook must compare with what they run with", happens: quietly(func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.sends("update", cart, manifest(cart, "broken"), "b")
			s.wait(time.Minute)
			s.sends("update", cart, manifest(cart, "one"), "a")
		})},
		"newly listed": {because: "its content at the edit is the one that counts", happens: quietly(func(s *harness) {
			s.set(configMap("more"), "1")
			s.begin()
			s.set(configMap("more"), "2")
			s.wait(time.Minute)
			s.sends("update", cart, edited(manifest(cart, "one"), func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app,extra,more") }), "a")
		})},
		"newly listed, then changed": {want: "current/modified", because: "it is listed", happens: quietly(unjudged(func(s *harness) {
			s.set(configMap("more"), "1")
			s.begin()
			s.sends("update", cart, edited(manifest(cart, "one"), func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app,extra,more") }), "a")
			s.wait(time.Minute)
			s.set(configMap("more"), "2")
		}))},
	})
}

// unjudged keeps the law "prompt" from judging what happens last.
func unjudged(happens func(s *harness)) func(s *harness) {
	return func(s *harness) {
		happens(s)
		for _, w := range s.oracle.all {
			w.due.reported = true
		}
	}
}

func TestCurrentOfStatefulSetIsJudgedByItsRevision(t *testing.T) {
	t.Parallel()
	s := newHarness(t, Options{})
	store := world.Key{Resource: world.StatefulSets, Namespace: "shop", Name: "store"}
	s.set(configMap("app"), "1")
	s.sends("create", store, manifest(store, "one"), "a")
	template := world.Section(s.objects[store], "spec", "template")
	revision := edited(template, func(o world.Object) { o["$patch"] = "replace" })
	s.change(nil, world.Key{Resource: world.ControllerRevisions, Namespace: "shop", Name: "store-1"}, nil, world.Object{
		"metadata": world.Object{"ownerReferences": owner(store)}, "data": world.Object{"spec": world.Object{"template": revision}},
	})
	made := edited(template, func(o world.Object) {
		world.Section(o, "metadata", "labels")["controller-revision-hash"] = "store-1"
		world.Section(o, "spec")["hostname"] = "store-0"
	})
	s.podOf(store, "store-0", made)
	s.set(configMap("app"), "2")
	for _, w := range s.oracle.all {
		w.due.reported = true
	}
	s.quiet()
	assert.Equal(t, []string{"current/modified"}, s.signatures())
	assert.Equal(t, 1, s.oracle.Describe()["pods judged"])
}

func TestPodWithoutRevisionIsMatchedByItsFields(t *testing.T) {
	t.Parallel()
	template := world.Section(manifest(cart, "one"), "spec", "template")
	pod := edited(template, func(o world.Object) {
		world.Section(o, "spec")["nodeName"] = "node-a"
		world.Section(o, "metadata", "labels")["pod-template-hash"] = "x"
	})
	assert.True(t, madeFrom(pod, template, prefix), "the pod has the fields of its template")
	assert.False(t, madeFrom(pod, world.Section(manifest(cart, "two"), "spec", "template"), prefix), "its image is another one")
}
