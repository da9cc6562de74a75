package oracle

import (
	"fmt"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// afterExcludedRelease changes a ConfigMap, unless the value is empty, releases the Deployment while a label excludes it, so that it
// keeps its hash, takes the label off, and rolls out what the reload makes.
func afterExcludedRelease(value string, reload func(*harness)) func(*harness) {
	return func(s *harness) {
		s.begin()
		if value != "" {
			s.set(configMap("app"), value)
		}
		released := manifest(cart, "two")
		s.sends("update", cart, edited(released, excludedBy("disabled")), "a")
		s.rollout(cart)
		s.sends("update", cart, released, "a")
		s.wait(time.Minute)
		reload(s)
		s.rollout(cart)
	}
}

// clientAsks is a verified reload by a client.
func clientAsks(s *harness) {
	call := s.call(user, "patch", cart, fmt.Appendf(nil, `{"metadata":{"annotations":{"%sconfig-hash":"x"}}}`, prefix))
	s.oracle.Request(call)
	s.change(call, cart, s.objects[cart], stamped(s.objects[cart], "b"))
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
}

// undoes brings the template of a manifest with the first hash, and rolls out what the webhook makes of it.
func (s *harness) undoes(to world.Object, hash string) {
	call := s.call(user, "patch", cart, []byte(`{"spec":{"template":{"metadata":{"annotations":{"`+prefix+`config-hash":"a"}}}}}`))
	s.oracle.Request(call)
	s.change(call, cart, stamped(to, "a"), stamped(to, hash))
	s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 200})
	s.rollout(cart)
}

// undoesWhileExcluded replaces the Deployment by a release that cannot start, and that by its first manifest with a label that
// excludes it. The webhook answers with these hashes.
func (s *harness) undoesWhileExcluded(released, undone string) {
	s.sends("update", cart, manifest(cart, "broken"), released)
	s.wait(time.Minute)
	s.sends("update", cart, edited(manifest(cart, "one"), excludedBy("disabled")), undone)
	s.rollout(cart)
}

// tracksMore is the manifest of the Deployment with another object, which is adopted.
func tracksMore() world.Object {
	return edited(manifest(cart, "one"), func(o world.Object) { setAnnotation(o, "secret."+otherDomain+"reload", "db") })
}

// releasedWhileHeld adopts a Secret with a content, releases the Deployment while a ConfigMap that its pods require is missing, when the
// Secret has the content "2" again, and rolls out what the reload afterwards makes.
func releasedWhileHeld(adopted string, changes ...string) func(*harness) {
	return func(s *harness) {
		s.set(secret("db"), "2")
		s.begin()
		s.set(secret("db"), adopted)
		s.sends("update", cart, tracksMore(), "a")
		s.wait(time.Minute)
		s.remove(user, configMap("app"))
		s.set(secret("db"), "2")
		s.wait(time.Second)
		s.sends("update", cart, edited(tracksMore(), func(o world.Object) {
			world.Section(o, "spec", "template")["spec"] = world.Section(manifest(cart, "two"), "spec", "template", "spec")
		}), "a")
		s.wait(time.Second)
		s.set(configMap("app"), "1")
		s.rollout(cart)
		s.wait(time.Minute)
		s.reload(cart, "b", changes...)
		s.rollout(cart)
	}
}

// changesAndBack changes a ConfigMap and takes that back, both with a stamp, before the pods are replaced.
func (s *harness) changesAndBack() {
	s.wait(time.Minute)
	s.set(configMap("extra"), "2")
	s.wait(time.Second)
	s.reload(cart, "x", "configmap/extra modified")
	s.wait(10 * time.Second)
	s.set(configMap("extra"), "1")
	s.wait(time.Second)
	s.reload(cart, "y", "configmap/extra modified")
	s.rollout(cart)
}

// changesAndBackDirectly changes a ConfigMap, which the program stamps, and takes that back after a while.
func (s *harness) changesAndBackDirectly(after time.Duration) {
	s.set(configMap("app"), "2")
	s.wait(1100 * time.Millisecond)
	s.reload(cart, "b", "configmap/app modified")
	s.wait(after)
	s.set(configMap("app"), "1")
}

// keys replaces the digest keys.
func (s *harness) keys(values ...string) {
	data := world.Object{}
	for _, value := range values {
		data[value] = value
	}
	s.write(user, "update", world.Key{Resource: world.Secrets, Namespace: "pod-reloader", Name: "pod-reloader-digest-key"}, world.Object{"data": data})
}

// createdUnseen creates the Deployment while the webhook is away, after a first digest key.
func (s *harness) createdUnseen(sent world.Object) {
	s.keys("one")
	s.set(configMap("app"), "1")
	s.set(configMap("extra"), "1")
	s.wait(time.Minute)
	s.oracle.Fault(Fault{At: s.now, Kind: "webhook-away", Begin: true})
	s.sends("create", cart, sent, "")
	s.rollout(cart)
	s.wait(3 * time.Second)
}

// createdLately creates the Deployment where no webhook sees it, two seconds before what follows.
func (s *harness) createdLately() {
	s.set(configMap("app"), "1")
	s.set(configMap("extra"), "1")
	s.wait(time.Minute)
	s.sends("create", cart, manifest(cart, "one"), "")
	s.wait(100 * time.Millisecond)
	s.rollout(cart)
	s.wait(2 * time.Second)
}

// recorded begins with a Deployment that the program has stamped directly, with a record.
func (s *harness) recorded() {
	s.beginWithChange()
	s.reload(cart, "a", "configmap/app modified")
	s.write(replica, "patch", cart, edited(s.objects[cart], func(o world.Object) {
		setAnnotation(o, prefix+"config-record", "v1:a:0011:configmap/app=01@1")
	}))
	s.rollout(cart)
	s.wait(time.Minute)
}

// releaseUnseen is a release that leaves all managed annotations alone, which no webhook sees.
func (s *harness) releaseUnseen() {
	s.edit(cart, func(o world.Object) { o["spec"] = world.Section(stamped(manifest(cart, "two"), "a"), "spec") })
}
