package oracle

import (
	"fmt"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

var (
	edge = world.Key{Resource: world.Proxies, Namespace: "shop", Name: "edge"}
	auth = world.Key{Resource: world.Filters, Namespace: "shop", Name: "auth"}
)

// referent stores a custom resource whose operator has seen a generation; it is ready.
func (s *harness) referent(client string, key world.Key, generation, observed int, spec world.Object) {
	s.write(client, "update", key, world.Object{
		"metadata": world.Object{"name": key.Name, "generation": int64(generation)}, "spec": spec,
		"status": world.Object{"observedGeneration": int64(observed), "conditions": []any{world.Object{"type": "Ready", "status": "True"}}},
	})
}

func filterSpec(mode string) world.Object {
	return world.Object{"mode": mode, "secretRef": world.Object{"name": "tls"}}
}

// beginGraph creates a graph and cart, which tracks it.
func (s *harness) beginGraph() {
	s.set(secret("tls"), "1")
	s.referent(user, auth, 1, 1, filterSpec("fast"))
	s.trackGraph("")
}

// adoptGraph creates cart, which tracks a graph and a ConfigMap, and then what makes the graph valid: the program adopts it.
func (s *harness) adoptGraph() {
	s.set(secret("tls"), "1")
	s.set(configMap("extra"), "1")
	s.trackGraph("extra")
	s.referent(user, auth, 1, 1, filterSpec("fast"))
	s.wait(5 * time.Second)
}

// reloadedWhileHeld is a reload because of the ConfigMap while the graph is held, and one because of the graph when it is back.
func (s *harness) reloadedWhileHeld() {
	s.set(configMap("extra"), "2")
	s.remove(user, auth)
	s.wait(2 * time.Second)
	s.reload(cart, "b", "configmap/extra modified")
	s.rollout(cart)
	s.wait(2 * time.Second)
	s.referent(user, auth, 1, 1, filterSpec("fast"))
	s.wait(10 * time.Second)
	s.reload(cart, "c", "proxies.proxy.example.com/edge modified")
	s.rollout(cart)
}

// trackGraph creates the custom resource that refers to the others, and cart, which tracks it and ConfigMaps.
func (s *harness) trackGraph(configMaps string) {
	s.referent(user, edge, 1, 1, world.Object{"filterRefs": []any{world.Object{"name": "auth"}}})
	s.wait(time.Minute)
	s.sends("create", cart, edited(manifest(cart, "one"), func(o world.Object) {
		setAnnotation(o, prefix+"configmaps", configMaps)
		setAnnotation(o, prefix+"referents", "proxies.proxy.example.com/edge")
		world.Section(o, "spec", "template", "spec")["containers"] = []any{world.Object{"image": "one"}}
	}), "a")
	s.wait(100 * time.Millisecond)
	s.rollout(cart)
	s.wait(time.Minute)
}

// reloaded is a reload because of the graph some time after a change.
func (s *harness) reloadedAfter(wait time.Duration) {
	s.wait(wait)
	s.reload(cart, "b", "proxies.proxy.example.com/edge modified")
	s.rollout(cart)
}

func TestGraphKept(t *testing.T) {
	t.Parallel()
	runLaw(t, "kept", map[string]lawCase{
		"leaf changed": {because: "that is what it is for", happens: func(s *harness) {
			s.beginGraph()
			s.set(secret("tls"), "2")
			s.reloadedAfter(10 * time.Second)
		}},
		"filter changed and ready": {because: "that is what it is for", happens: func(s *harness) {
			s.beginGraph()
			s.referent(user, auth, 2, 1, filterSpec("slow"))
			s.wait(5 * time.Second)
			s.referent(user, auth, 2, 2, filterSpec("slow"))
			s.reloadedAfter(10 * time.Second)
		}},
		"filter changed and stale": {want: "kept/program/touched", because: "the operator has not looked", happens: func(s *harness) {
			s.beginGraph()
			s.referent(user, auth, 2, 1, filterSpec("slow"))
			s.reloadedAfter(10 * time.Second)
		}},
		"filter deleted": {want: "kept/program/touched", because: "it is required", happens: func(s *harness) {
			s.beginGraph()
			s.remove(user, auth)
			s.reloadedAfter(10 * time.Second)
		}},
		"filter changed and back": {want: "kept/program/touched", because: "the pods had it all", happens: func(s *harness) {
			s.beginGraph()
			s.referent(user, auth, 2, 1, filterSpec("slow"))
			s.wait(5 * time.Second)
			s.referent(user, auth, 3, 3, filterSpec("fast"))
			s.reloadedAfter(10 * time.Second)
		}},
		"reload among changes": {because: "watches of several resources are not in order", happens: func(s *harness) {
			s.beginGraph()
			s.wait(time.Second)
			call := s.call(replica, "patch", cart, []byte("template"))
			s.oracle.Request(call)
			s.referent(user, auth, 2, 1, filterSpec("slow"))
			s.change(call, cart, s.objects[cart], edited(stamped(s.objects[cart], "b"), func(o world.Object) {
				setAnnotation(o, prefix+"last-reload", `{"time":"`+s.now.Format(time.RFC3339Nano)+`"}`)
			}))
			s.reportReload(cart)
			s.rollout(cart)
		}},
		"changed and held at once, stamped for another reason": {
			because: "it was adopted with its earlier content", happens: func(s *harness) {
				s.adoptGraph()
				s.set(secret("tls"), "2")
				s.reloadedWhileHeld()
			},
		},
		"held, stamped for another reason": {
			want: "kept/program/touched", because: "it was adopted with this content", happens: func(s *harness) {
				s.adoptGraph()
				s.reloadedWhileHeld()
			},
		},
		"nothing changed": {want: "kept/program", because: "the pods had it all", happens: func(s *harness) {
			s.beginGraph()
			s.reload(cart, "b")
			s.rollout(cart)
		}},
		"published anew": {want: "kept/published", because: "nothing below it has changed", happens: func(s *harness) {
			s.beginGraph()
			for _, digest := range []string{"v1:a", "v1:b"} {
				s.publish(digest)
				s.wait(10 * time.Second)
			}
		}},
		"published while held": {want: "kept/published-while-held", because: "what is there is the last one that was valid", happens: func(s *harness) {
			s.beginGraph()
			s.remove(user, auth)
			s.wait(10 * time.Second)
			s.publish("v1:a")
		}},
	})
}

// publish is a write of the digest of the proxy by the program.
func (s *harness) publish(digest string) {
	s.write(replica, "patch", edge, edited(s.objects[edge], func(o world.Object) { setAnnotation(o, prefix+"referent-checksum", digest) }))
}

func TestGraphCurrent(t *testing.T) {
	t.Parallel()
	runLaw(t, "current", map[string]lawCase{
		"held": {because: "the pods keep what they have", happens: func(s *harness) {
			s.beginGraph()
			s.referent(user, auth, 2, 1, filterSpec("slow"))
			s.reportHeld()
			s.quiet()
		}},
		"reloaded": {because: "the pods have the new content", happens: func(s *harness) {
			s.beginGraph()
			s.set(secret("tls"), "2")
			s.reloadedAfter(10 * time.Second)
			s.publish("v1:a")
			s.quiet()
		}},
		"not published": {want: "current/not-published", because: "other controllers wait for it", happens: func(s *harness) {
			s.beginGraph()
			s.quiet()
		}},
		"published for another content": {want: "current/published", because: "a leaf has changed", happens: func(s *harness) {
			s.beginGraph()
			s.publish("v1:a")
			s.wait(10 * time.Second)
			s.set(secret("tls"), "2")
			s.reloadedAfter(10 * time.Second)
			s.quiet()
		}},
	})
}

func TestGraphPrompt(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"leaf changed": {want: "prompt/modified", because: "no reload came", happens: func(s *harness) {
			s.beginGraph()
			s.set(secret("tls"), "2")
			s.wait(time.Minute)
			s.namespace("shop", nil)
		}},
		"held": {because: "it is not ready", happens: func(s *harness) {
			s.beginGraph()
			s.referent(user, auth, 2, 1, filterSpec("slow"))
			s.reportHeld()
			s.quiet()
		}},
		"reloaded before all replicas hide the leaf": {because: "the one that reloads hides it", happens: func(s *harness) {
			s.beginGraph()
			withoutSecrets := Scope{InScope: everything, Hidden: Hidden{Kinds: []string{secretList}}}
			s.oracle.Rescope(s.now, withoutSecrets)
			s.reloadedAfter(10 * time.Second)
			s.wait(10 * time.Second)
			withoutSecrets.Clear = true
			s.oracle.Rescope(s.now, withoutSecrets)
			s.wait(time.Minute)
			s.namespace("shop", nil)
		}},
		"held, and another object changed": {want: "prompt/modified", because: "that one can be compared", happens: func(s *harness) {
			s.changeWhileHeld("v1:a")
		}},
		"held, and another object changed, without a record": {because: "the hash alone cannot be compared", happens: func(s *harness) {
			s.changeWhileHeld("")
		}},
		"held, and another object changed, with a record that cannot be read": {because: "the hash alone cannot be compared", happens: func(s *harness) {
			s.changeWhileHeld("garbage")
		}},
	})
}

// changeWhileHeld is a change of a ConfigMap while a custom resource is held that cart tracks as well, and whether cart has a Record.
func (s *harness) changeWhileHeld(record string) {
	s.adoptGraph()
	s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, record) })
	s.referent(user, auth, 2, 1, filterSpec("slow"))
	s.reportHeld()
	s.set(configMap("extra"), "2")
	s.wait(time.Minute)
	s.namespace("shop", nil)
}

func TestGraphGates(t *testing.T) {
	t.Parallel()
	// after is a reload 0.9 s after the second of two changes of a Secret below a custom resource that has changed, too.
	after := func(pause time.Duration, second string) func(s *harness) {
		return func(s *harness) {
			s.beginGraph()
			s.referent(user, auth, 2, 2, filterSpec("slow"))
			s.set(secret("tls"), "2")
			s.wait(pause)
			s.set(secret("tls"), second)
			s.reloadedAfter(900 * time.Millisecond)
		}
	}
	runLaw(t, "gates", map[string]lawCase{
		"changed and back at once": {because: "changes gather for 100 ms: this is none", happens: after(100*time.Millisecond, "1")},
		"changed twice at once":    {want: "gates/settle", because: "it was quiet for 0.9 s only", happens: after(100*time.Millisecond, "3")},
		"changed and back later":   {want: "gates/settle", because: "the program has seen both", happens: after(300*time.Millisecond, "1")},
	})
}

func TestGraphUnharmed(t *testing.T) {
	t.Parallel()
	runLaw(t, "unharmed", map[string]lawCase{
		"program edits a spec": {want: "unharmed/referent", because: "it writes one annotation", happens: func(s *harness) {
			s.beginGraph()
			s.referent(replica, edge, 2, 1, world.Object{})
		}},
	})
	runLaw(t, "scope", map[string]lawCase{
		"program writes a filter": {want: "scope/referent", because: "nothing is published there", happens: func(s *harness) {
			s.beginGraph()
			s.referent(replica, auth, 1, 1, filterSpec("fast"))
		}},
	})
}

// reportHeld writes the Event about the custom resource of cart that is held.
func (s *harness) reportHeld() {
	s.reloads++
	s.write(replica, "create", world.Key{Resource: world.Events, Namespace: "shop", Name: fmt.Sprint("held-", s.reloads)}, world.Object{
		"type": "Warning", "reason": "ReferentHeld", "note": "the pods keep the last valid state: proxies.proxy.example.com/edge: not ready",
		"regarding": world.Object{"kind": "Deployment", "namespace": "shop", "name": "cart", "uid": "uid-cart"},
	})
}

func TestHeldReferentsAreReported(t *testing.T) {
	t.Parallel()
	hold := func(s *harness, generation int) {
		s.referent(user, auth, generation, generation-1, filterSpec("slow"))
		s.wait(20 * time.Second)
	}
	free := func(s *harness, generation int, lasting time.Duration) {
		s.referent(user, auth, generation, generation, filterSpec("fast"))
		s.wait(lasting)
	}
	runLaw(t, "visible", map[string]lawCase{
		"reported": {because: "an Event names it", happens: func(s *harness) {
			s.beginGraph()
			hold(s, 2)
			s.reportHeld()
			s.wait(heldTime)
			s.quiet()
		}},
		"not reported": {want: "visible/held", because: "there is no Event", happens: func(s *harness) {
			s.beginGraph()
			hold(s, 2)
			s.wait(heldTime)
			s.quiet()
		}},
		"held from the first, and not reported": {want: "visible/held", because: "there is no Event", happens: func(s *harness) {
			s.trackGraph("")
			s.wait(heldTime)
			s.quiet()
		}},
		"held from the first, and reported": {because: "an Event names it", happens: func(s *harness) {
			s.trackGraph("")
			s.reportHeld()
			s.wait(heldTime)
			s.quiet()
		}},
		"not reported again": {want: "visible/held", because: "it was not held for a while", happens: func(s *harness) {
			s.beginGraph()
			hold(s, 2)
			s.reportHeld()
			free(s, 2, 2*freeTime)
			hold(s, 3)
			s.wait(heldTime)
			s.quiet()
		}},
		"reported again": {because: "an Event names it again", happens: func(s *harness) {
			s.beginGraph()
			hold(s, 2)
			s.reportHeld()
			free(s, 2, 2*freeTime)
			hold(s, 3)
			s.reportHeld()
			s.wait(heldTime)
			s.quiet()
		}},
		"free for a moment": {because: "the program may not have seen it", happens: func(s *harness) {
			s.beginGraph()
			hold(s, 2)
			s.reportHeld()
			free(s, 2, time.Second)
			hold(s, 3)
			s.wait(heldTime)
			s.quiet()
		}},
		"free at last": {because: "there is nothing to report", happens: func(s *harness) {
			s.beginGraph()
			hold(s, 2)
			free(s, 2, heldTime)
			s.publish("v1:a")
			s.quiet()
		}},
	})
}
