package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestVisibleBlame(t *testing.T) {
	t.Parallel()
	reported := func(client, reason string) func(s *harness) {
		return func(s *harness) {
			s.write(client, "create", world.Key{Resource: world.Events, Namespace: "shop", Name: "one"}, world.Object{
				"type": "Warning", "reason": reason, "note": "the stamp is not stored",
				"regarding": world.Object{"kind": "Deployment", "namespace": "shop", "name": "cart", "uid": "uid-cart"},
			})
		}
	}
	after := func(first, then func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.begin()
			if first != nil {
				first(s)
			}
			then(s)
		}
	}
	lost := reported(replica, "StampLost")
	two := Options{Sides: func(string, map[string]string, map[string]string) Sides { return Sides{} }}
	runLaw(t, "visible", map[string]lawCase{
		"a stamp that nothing removes":  {want: "visible/blamed", because: "nothing else writes there", happens: after(nil, lost)},
		"another report":                {because: "it does not say that anything is removed", happens: after(nil, reported(replica, "ConfigMissing"))},
		"an Event of a user":            {because: "the program does not say it", happens: after(nil, reported(user, "StampLost"))},
		"a webhook that removes stamps": {because: "it is to blame", happens: after(func(s *harness) { s.fault(stripsStamp, "deployments", time.Minute) }, lost)},
		"a webhook of another kind":     {want: "visible/blamed", because: "it is not called", happens: after(func(s *harness) { s.fault(stripsStamp, "daemonsets", time.Minute) }, lost)},
		"a webhook that was there once": {want: "visible/blamed", because: "a stamp is stored since", happens: after(func(s *harness) {
			s.fault(stripsStamp, "deployments", time.Minute)
			s.wait(time.Hour)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}, lost)},
		"a webhook that was there just before": {because: "the Event may be late", happens: after(func(s *harness) {
			s.fault(stripsStamp, "deployments", time.Minute)
			s.set(configMap("app"), "2")
			s.wait(time.Second)
			s.reload(cart, "b", "configmap/app modified")
		}, lost)},
		"a webhook that removes records":    {want: "visible/blamed", because: "it leaves the stamp", happens: after(func(s *harness) { s.fault(stripsRecord, "deployments", time.Minute) }, lost)},
		"two installations with one digest": {options: two, because: "each may undo what the other one writes", happens: after(nil, lost)},
	})
}
