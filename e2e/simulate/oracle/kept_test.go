package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestKeptAfterAChangeThatWasUndone(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"changed and back": {want: "kept/program/touched", because: "the pods had it all", happens: func(s *harness) {
			s.begin()
			s.set(configMap("extra"), "2")
			s.set(configMap("extra"), "1")
			s.wait(20 * time.Second)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"changed and back, with a key rotated before a release": {because: "the hash is under the older key", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("one", "two")
			s.sends("update", cart, manifest(cart, "two"), "a")
			s.rollout(cart)
			s.changesAndBack()
		}},
		"changed and back, with an object adopted since the stamp": {
			because: "the hash is not over that object", happens: func(s *harness) {
				s.begin()
				s.sends("update", cart, tracksMore(), "a")
				s.wait(time.Minute)
				s.changesAndBack()
			},
		},
		"changed and back, with an object adopted since the stamp and before a release": {
			because: "the release keeps the hash", happens: func(s *harness) {
				s.begin()
				s.sends("update", cart, tracksMore(), "a")
				s.wait(time.Minute)
				s.sends("update", cart, edited(tracksMore(), func(o world.Object) {
					world.Section(o, "spec", "template")["spec"] = world.Section(manifest(cart, "two"), "spec", "template", "spec")
				}), "a")
				s.rollout(cart)
				s.changesAndBack()
			},
		},
		"changed and back, with an object that was tracked for a while": {
			want: "kept/program/returned", because: "the hash is over what is tracked", happens: func(s *harness) {
				s.begin()
				s.sends("update", cart, tracksMore(), "a")
				s.wait(time.Minute)
				s.sends("update", cart, manifest(cart, "one"), "a")
				s.wait(time.Minute)
				s.changesAndBack()
			},
		},
		"changed and back, with an object adopted before the stamp": {
			want: "kept/program/returned", because: "the hash of the pods is over all", happens: func(s *harness) {
				s.begin()
				s.sends("update", cart, tracksMore(), "a")
				s.wait(time.Minute)
				s.set(configMap("app"), "2")
				s.wait(time.Second)
				s.reload(cart, "b", "configmap/app modified")
				s.rollout(cart)
				s.wait(time.Minute)
				s.changesAndBack()
			},
		},
		"changed and back, without a hash, with a variable of Reloader": {
			because: "only a hash comes back", happens: func(s *harness) {
				s.begin()
				s.sends("update", cart, withEnv(manifest(cart, "two"), variable("STAKATER_APP_CONFIGMAP", "0a")), "")
				s.rollout(cart)
				s.changesAndBack()
			},
		},
		"changed and back, with a variable of Reloader": {
			want: "kept/program/returned", because: "the hash comes back", happens: func(s *harness) {
				s.begin()
				s.sends("update", cart, withEnv(manifest(cart, "two"), variable("STAKATER_APP_CONFIGMAP", "0a")), "a")
				s.rollout(cart)
				s.changesAndBack()
			},
		},
		"nothing changed, with an object adopted since the stamp": {
			want: "kept/program", because: "adopting restarts nothing", happens: func(s *harness) {
				s.begin()
				s.sends("update", cart, tracksMore(), "a")
				s.wait(time.Minute)
				s.reload(cart, "b")
				s.rollout(cart)
			},
		},
	})
}

// lateReloader has Stakater's Reloader reload a workload for a content that its pods have.
func lateReloader(s *harness) {
	s.begin()
	s.sends("update", cart, withEnv(manifest(cart, "one"), variable("STAKATER_APP_CONFIGMAP", sumOf("key=1"))), "a")
	s.rollout(cart)
}

func TestKeptBesideWritesOfUsers(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"PUT that forgot the managed annotations, not restored": {want: "kept/update", because: "the webhook must restore them", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, manifest(cart, "one"), "b")
			s.rollout(cart)
		}},
		"variable of Reloader for nothing new, without a strategy": {because: "it is part of the template, like any other", happens: lateReloader},
		"variable of Reloader for nothing new, with a strategy": {
			options: Options{Strategy: strategyEnvVars}, want: "kept/update", because: "the webhook takes the write of Reloader back", happens: lateReloader,
		},
		"PUT that forgot the managed annotations, restored": {because: "the template is the same", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
		}},
		"PUT that forgot the managed annotations while the webhook was away": {because: "it could not be restored", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.sends("update", cart, manifest(cart, "one"), "")
			s.rollout(cart)
		}},
		"managed annotations put back after such a PUT": {want: "kept/program", because: "once is enough", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
			s.sends("update", cart, manifest(cart, "one"), "")
			s.rollout(cart)
			s.wait(time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
			s.wait(5 * time.Minute)
			s.reload(cart, "a")
			s.rollout(cart)
		}},
		"lists edited": {because: "that restarts once", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, edited(manifest(cart, "one"), func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app") }), "b")
			s.rollout(cart)
		}},
		"lists edited, restarted twice": {want: "kept/program", because: "that restarts once", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, edited(manifest(cart, "one"), func(o world.Object) { setAnnotation(o, prefix+"configmaps", "app") }), "b")
			s.rollout(cart)
			s.wait(time.Minute)
			s.reload(cart, "c")
			s.rollout(cart)
		}},
		"scaled down": {because: "a pod of the present template is deleted", happens: func(s *harness) {
			s.begin()
			s.change(nil, s.pods[0], nil, nil)
		}},
		"deleted by a user": {because: "it is the user's", happens: func(s *harness) {
			s.begin()
			s.reload(cart, "b", "")
			s.remove(user, s.pods[0])
		}},
		"workload deleted": {because: "the pods go with it", happens: func(s *harness) {
			s.begin()
			s.reload(cart, "b", "")
			s.remove(user, cart)
			s.change(nil, s.pods[0], nil, nil)
		}},
		"namespace deleted": {because: "the pods go with it", happens: func(s *harness) {
			s.begin()
			s.reload(cart, "b", "")
			s.write(user, "update", world.Key{Resource: world.Namespaces, Name: "shop"},
				world.Object{"metadata": world.Object{"deletionTimestamp": "2030-01-01T00:00:00Z"}})
			s.change(nil, s.pods[0], nil, nil)
		}},
		"annotation of one's own with the prefix": {because: "the program never wrote it", happens: func(s *harness) {
			s.begin()
			s.edit(cart, func(o world.Object) { setAnnotation(world.Section(o, "spec", "template"), prefix+"mine", "1") })
			s.rollout(cart)
		}},
	})
}

func TestKeptByReleasesAndKeys(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"release": {because: "the template changed", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, manifest(cart, "two"), "a")
			s.rollout(cart)
		}},
		"key rotated": {want: "kept/program", because: "a rotation restarts nothing", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("one", "two")
			s.wait(time.Minute)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"key lost": {want: "kept/program", because: "a loss restarts nothing", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("two")
			s.wait(time.Minute)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"key lost and content changed": {because: "that is due", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.keys("two")
			s.set(configMap("extra"), "2")
			s.wait(time.Minute)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"key lost after a content that came back": {because: "what is known under it means nothing", happens: func(s *harness) {
			s.begin()
			s.keys("one")
			s.set(configMap("extra"), "2")
			s.keys("two")
			s.set(configMap("extra"), "1")
			s.wait(time.Minute)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"rolled back to the pods of the release before": {because: "they are found again", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, manifest(cart, "broken"), "a")
			s.wait(time.Minute)
			s.sends("update", cart, manifest(cart, "one"), "a")
			s.wait(time.Minute)
			s.quiet()
		}},
		"rolled back, and the pods of the release before are replaced": {want: "kept/update", because: "they had it all", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, manifest(cart, "broken"), "b")
			s.wait(time.Minute)
			s.sends("update", cart, manifest(cart, "one"), "c")
			s.wait(time.Minute)
			s.change(nil, s.pods[0], nil, nil)
		}},
		"versions moved, with revision digests": {
			options: Options{Revision: true}, because: "clients wait for the digest of the versions", happens: func(s *harness) {
				s.begin()
				s.set(configMap("app"), "1")
				s.sends("update", cart, manifest(cart, "broken"), "b")
				s.wait(time.Minute)
				s.sends("update", cart, manifest(cart, "one"), "c")
				s.wait(time.Minute)
				s.change(nil, s.pods[0], nil, nil)
			},
		},
		"content returned during a pause": {want: "kept/program/returned", because: "its digest returns with it", happens: returned},
		"content returned during a pause, with revision digests": {
			options: Options{Revision: true}, because: "a digest of versions does not return", happens: returned,
		},
		"versions moved, with revision digests, and the program stamps": {
			options: Options{Revision: true}, want: "kept/program/touched", because: "contents decide what is due", happens: func(s *harness) {
				s.begin()
				s.set(configMap("app"), "1")
				s.wait(time.Second)
				s.reload(cart, "b")
				s.rollout(cart)
			},
		},
	})
}

// returned has pods replaced for a content that has returned since.
func returned(s *harness) {
	s.begin()
	s.changesAndBack()
}

func TestKeptAfterACopyAndTheLossOfAKey(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"lost before the annotations were compared": {because: "they may be of another namespace", happens: func(s *harness) {
			s.createdUnseen(stamped(manifest(cart, "one"), "z"))
			s.keys("two")
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
		"lost after a release that keeps the annotations": {because: "they may be of another namespace", happens: func(s *harness) {
			s.createdUnseen(stamped(manifest(cart, "one"), "z"))
			s.sends("update", cart, stamped(manifest(cart, "two"), "z"), "")
			s.rollout(cart)
			s.keys("two")
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
		"created without annotations": {want: "kept/program", because: "nothing was known of it", happens: func(s *harness) {
			s.createdUnseen(manifest(cart, "one"))
			s.keys("two")
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
		"lost after the annotations were compared": {want: "kept/program", because: "a loss restarts nothing", happens: func(s *harness) {
			s.createdUnseen(stamped(manifest(cart, "one"), "z"))
			s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away"})
			s.wait(5 * time.Minute)
			s.keys("two")
			s.wait(time.Minute)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
	})
}

func TestKept(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"content changed": {because: "that is what it is for", happens: func(s *harness) {
			s.beginWithReload()
		}},
		"nothing changed": {want: "kept/program", because: "the pods had it all", happens: func(s *harness) {
			s.begin()
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"only labelled": {want: "kept/program/touched", because: "labels are no content", happens: func(s *harness) {
			s.begin()
			labelled := edited(s.objects[configMap("app")], func(o world.Object) { world.Section(o, "metadata")["labels"] = world.Object{"a": "b"} })
			s.write(user, "update", configMap("app"), labelled)
			s.wait(time.Second)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"deleted and created with equal content": {want: "kept/program/touched", because: "the pods had it all", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(2 * time.Second)
			s.set(configMap("app"), "1")
			s.wait(20 * time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
		"adopted and not changed, in direct mode": {options: Options{Direct: true}, want: "kept/program", because: "installing restarts nothing", happens: func(s *harness) {
			s.begin()
			s.wait(time.Hour)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"created and not changed, in direct mode": {options: Options{Direct: true}, want: "kept/program", because: "adopting restarts nothing", happens: func(s *harness) {
			s.createdLately()
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"created and changed, in direct mode": {options: Options{Direct: true}, because: "the old content may have been adopted", happens: func(s *harness) {
			s.createdLately()
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
		"released and not changed, in direct mode": {options: Options{Direct: true}, want: "kept/program", because: "a release restarts nothing twice", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, manifest(cart, "two"), "")
			s.rollout(cart)
			s.wait(2 * time.Second)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"stamped twice for a change, in direct mode": {options: Options{Direct: true}, want: "kept/program", because: "once is enough", happens: func(s *harness) {
			s.beginWithReload()
			s.wait(7 * time.Second)
			s.reload(cart, "c")
			s.rollout(cart)
		}},
		"changed before it was adopted, in direct mode": {options: Options{Direct: true}, because: "the program may have seen the old content", happens: func(s *harness) {
			s.begin()
			s.sends("update", cart, manifest(cart, "two"), "")
			s.rollout(cart)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.set(configMap("app"), "1")
			s.wait(time.Hour)
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"pods started later with what came before the reload": {because: "the change was known, not that they had it", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.pods = append(s.pods, s.podOf(world.Key{Resource: world.ReplicaSets, Namespace: "shop", Name: "rs-" + s.pods[0].Name}, "scaled-up",
				world.Section(s.objects[cart], "spec", "template")))
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}},
	})
}
