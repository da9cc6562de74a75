package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestGates(t *testing.T) {
	t.Parallel()
	after := func(wait time.Duration) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(wait)
			s.reload(cart, "b", "configmap/app modified")
			s.rollout(cart)
		}
	}
	again := func(wait time.Duration, between func(s *harness)) func(s *harness) {
		return func(s *harness) {
			after(time.Second)(s)
			s.set(configMap("app"), "3")
			if between != nil {
				between(s)
			}
			s.wait(wait)
			s.reload(cart, "c", "configmap/app modified")
			s.rollout(cart)
		}
	}
	runLaw(t, "gates", map[string]lawCase{
		"settled":        {because: "one second is enough", happens: after(time.Second)},
		"a little early": {because: "clocks differ", happens: after(995 * time.Millisecond)},
		"at once":        {want: "gates/settle", because: "nothing settled", happens: after(10 * time.Millisecond)},
		"half settled":   {want: "gates/settle", because: "nothing settled", happens: after(600 * time.Millisecond)},
		"no settle":      {options: Options{Settle: time.Nanosecond, Refractory: time.Second}, because: "the gate is off", happens: after(0)},
		"rested":         {because: "five seconds are enough", happens: again(5*time.Second, nil)},
		"not rested":     {want: "gates/refractory", because: "two restarts in two seconds", happens: again(2*time.Second, nil)},
		"own timing of a replica": {because: "it was started with other flags", happens: func(s *harness) {
			s.oracle.Timing(replica, 0, 0, 0)
			again(0, nil)(s)
		}},
		"release in between": {because: "it is the user's", happens: again(2*time.Second, func(s *harness) {
			s.sends("update", cart, manifest(cart, "two"), "x")
			s.set(configMap("app"), "4")
		})},
		"last change unsettled": {want: "gates/settle", because: "it was quiet for 0.7 s only", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(800 * time.Millisecond)
			s.set(configMap("app"), "3")
			s.wait(700 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"last change just now": {because: "the program may have read it before the watch event came", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(999 * time.Millisecond)
			s.set(configMap("app"), "3")
			s.wait(time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"settle-max": {because: "five seconds after the first change", happens: func(s *harness) {
			s.begin()
			for i := range 7 {
				s.set(configMap("app"), string(rune('A'+i)))
				s.wait(700 * time.Millisecond)
			}
			s.wait(100 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"labelled five seconds before": {because: "the program does not know that the content was the same", happens: func(s *harness) {
			s.begin()
			labelled := edited(s.objects[configMap("app")], func(o world.Object) { world.Section(o, "metadata")["labels"] = world.Object{"a": "b"} })
			s.write(user, "update", configMap("app"), labelled)
			s.wait(4500 * time.Millisecond)
			s.set(configMap("app"), "2")
			s.wait(500 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"changed before a direct write": {
			options: Options{Direct: true},
			because: "it was made from an earlier content, and five seconds have passed", happens: func(s *harness) {
				s.beginWithChange()
				s.set(configMap("app"), "3")
				s.wait(1400 * time.Millisecond)
				s.reload(cart, "b", "configmap/app modified")
				s.wait(4400 * time.Millisecond)
				s.set(configMap("app"), "4")
				s.wait(700 * time.Millisecond)
				s.reload(cart, "c", "configmap/app modified")
			},
		},
		"released directly between two changes": {
			options: Options{Direct: true},
			because: "the first change began the settle time, and the program may have read the second before it heard of it",
			happens: func(s *harness) {
				s.beginWithChange()
				s.wait(1400 * time.Millisecond)
				s.reload(cart, "b", "configmap/app modified")
				s.record("v1")
				s.wait(5 * time.Second)
				s.set(configMap("app"), "3")
				s.sends("update", cart, edited(s.objects[cart], func(o world.Object) {
					world.Section(o, "spec", "template", "metadata")["labels"] = world.Object{"version": "two"}
				}), "b")
				s.wait(2 * time.Second)
				s.set(configMap("app"), "4")
				s.wait(300 * time.Millisecond)
				s.reload(cart, "c", "configmap/app modified")
			},
		},
		"deleted and created again at once": {because: "the program reads it again, and finds the same content", happens: func(s *harness) {
			s.begin()
			s.set(configMap("extra"), "2")
			s.wait(time.Second)
			deletedFor(s, 200*time.Millisecond)
			s.wait(500 * time.Millisecond)
			s.reload(cart, "b", "configmap/extra modified")
		}},
		"deleted for a while": {want: "gates/settle", because: "the program finds it deleted", happens: func(s *harness) {
			s.begin()
			s.set(configMap("extra"), "2")
			s.wait(time.Second)
			deletedFor(s, 400*time.Millisecond)
			s.wait(500 * time.Millisecond)
			s.reload(cart, "b", "configmap/extra modified")
		}},
		"leader changed": {because: "a new leader does not know when the change was", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(10 * time.Millisecond)
			s.oracle.Leader("replica-1.1", s.now)
			s.wait(10 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"another replica was killed": {want: "gates/settle", because: "the leader goes on", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.1"})
			s.wait(2 * time.Minute)
			s.oracle.Fault(Fault{At: s.now, Kind: "killed", Scope: "replica-1", Begin: true})
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.1", Begin: true})
			s.wait(30 * time.Second)
			s.set(configMap("app"), "2")
			s.wait(10 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"the leader was frozen": {because: "it may not have heard of the change", happens: func(s *harness) {
			s.begin()
			s.fault("frozen", "replica-0", 2*time.Second)
			s.wait(5 * time.Second)
			s.set(configMap("app"), "2")
			s.wait(10 * time.Millisecond)
			s.reload(cart, "b", "configmap/app modified")
		}},
		"clock wrong": {because: "its seconds are others", happens: func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "clock", Scope: "replica-0", Begin: true})
			again(time.Second, nil)(s)
		}},
	})
}

// deletedFor deletes configmap/app and creates it again with the same content.
func deletedFor(s *harness, d time.Duration) {
	content := s.objects[configMap("app")]
	s.remove(user, configMap("app"))
	s.wait(d)
	s.write(user, "create", configMap("app"), content)
}
