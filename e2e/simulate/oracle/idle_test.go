package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestIdle(t *testing.T) {
	t.Parallel()
	lease := world.Key{Resource: world.Leases, Namespace: "pod-reloader", Name: "lease"}
	keys := world.Key{Resource: world.Secrets, Namespace: "pod-reloader", Name: "pod-reloader-digest-key"}
	idle := func(client, verb string, key world.Key) func(s *harness) {
		return func(s *harness) {
			s.begin()
			from := s.now
			s.wait(time.Minute)
			s.request(client, verb, key, []byte("{}"))
			s.wait(time.Minute)
			s.oracle.Idle(from, s.now)
		}
	}
	runLaw(t, "idle", map[string]lawCase{
		"lease":               {because: "leases are renewed", happens: idle(replica, "update", lease)},
		"watch":               {because: "watches are opened again", happens: idle(replica, "watch", world.Key{Resource: world.Secrets})},
		"discovery":           {because: "it is no resource", happens: idle(replica, "get", world.Key{})},
		"own keys":            {because: "they are its own", happens: idle(replica, "get", keys)},
		"user":                {because: "users may", happens: idle(user, "update", cart)},
		"read of a ConfigMap": {want: "idle/read", because: "nothing had changed", happens: idle(replica, "get", configMap("app"))},
		"read of a workload":  {want: "idle/read", because: "nothing had changed", happens: idle(replica, "get", cart)},
		"read of a lease":     {because: "leases are renewed", happens: idle(replica, "get", lease)},
		"watch opened again and again": {want: "idle/watch", because: "the API server ends it after some minutes only", happens: func(s *harness) {
			s.begin()
			from := s.now
			for range 3 {
				s.wait(time.Second)
				s.request(replica, "watch", world.Key{Resource: world.Secrets}, nil)
			}
			s.oracle.Idle(from, s.now)
		}},
		"list":  {want: "idle/list", because: "nothing had changed", happens: idle(replica, "list", world.Key{Resource: world.Secrets})},
		"patch": {want: "idle/patch", because: "nothing had changed", happens: idle(replica, "patch", cart)},
		"new Event": {want: "idle/create", because: "nothing had changed", happens: idle(replica, "create",
			world.Key{Resource: world.Events, Namespace: "shop"})},
		"before": {because: "it was not idle yet", happens: func(s *harness) {
			s.begin()
			s.request(replica, "patch", cart, nil)
			s.wait(time.Minute)
			s.oracle.Idle(s.now, s.now.Add(time.Minute))
		}},
		"warning repeated after an hour": {because: "the API server has forgotten it", happens: func(s *harness) {
			s.begin()
			s.event(cart, "one", "Warning", "ConfigMissing")
			from := s.now.Add(time.Minute)
			s.wait(time.Hour)
			s.event(cart, "two", "Warning", "ConfigMissing")
			s.oracle.Idle(from, s.now)
		}},
		"warning repeated after a minute": {want: "idle/create", because: "it was written a minute ago", happens: func(s *harness) {
			s.begin()
			s.event(cart, "one", "Warning", "ConfigMissing")
			from := s.now.Add(time.Second)
			s.wait(time.Minute)
			s.event(cart, "two", "Warning", "ConfigMissing")
			s.oracle.Idle(from, s.now)
		}},
	})
}
