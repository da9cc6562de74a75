package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestPromptUnderFaultsOfAPlace(t *testing.T) {
	t.Parallel()
	hooked := Options{Webhook: true}
	lasting := func(kind, scope string) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope, Begin: true})
			s.set(configMap("app"), "2")
			s.wait(5 * time.Minute)
			s.tick()
		}
	}
	runLaw(t, "prompt", map[string]lawCase{
		"whole program":       {options: hooked, because: "the API server is away", happens: lasting("api-away", "")},
		"own namespace":       {options: hooked, because: "its writes hang", happens: lasting("namespace-webhook", "namespaces/shop")},
		"own object":          {options: hooked, because: "its writes fail", happens: lasting("api-errors", "deployments/shop/cart")},
		"listed object":       {options: hooked, because: "it cannot be read", happens: lasting("api-errors", "configmaps/shop/app")},
		"resource":            {options: hooked, because: "it may be needed", happens: lasting("permissions", "configmaps")},
		"own kind":            {options: hooked, because: "its writes have no answer", happens: lasting(writesHang, "deployments")},
		"all kinds":           {options: hooked, because: "its writes have no answer", happens: lasting(writesHang, "")},
		"unknown scope":       {options: hooked, because: "it may be anything", happens: lasting("whatever", "somewhere")},
		"only replica":        {options: hooked, because: "no replica works", happens: lasting("down", replica)},
		"only replica frozen": {options: hooked, because: "no replica works", happens: lasting("frozen", "replica-0")},
		"other namespace": {
			options: hooked, want: "prompt/modified/neighbour", because: "faults elsewhere are no excuse",
			happens: func(s *harness) { s.namespace("bank", nil); lasting("namespace-webhook", "bank")(s) },
		},
		"other kind": {
			options: hooked, want: "prompt/modified/neighbour", because: "it has its own writes", happens: lasting(writesHang, "statefulsets"),
		},
		"other kind, a write of its namespace hangs": {
			options: hooked, want: "prompt/modified/neighbour", because: "the namespace has another slot soon", happens: besideHung("shop", "db"),
		},
		"other kind, a write of another namespace hangs": {
			options: hooked, want: "prompt/modified/neighbour", because: "that holds up its own namespace only", happens: besideHung("bank", "db"),
		},
		"other kind, as many writes of the namespace hang as it has slots": {
			options: hooked, because: "no slot is left", happens: besideHung("shop", "a", "b", "c", "d", "e", "f", "g", "h"),
		},
		"other object": {
			options: hooked, want: "prompt/modified", because: "faults elsewhere are no excuse",
			happens: lasting("api-errors", "deployments/shop/web"),
		},
		"user": {options: hooked, want: "prompt/modified", because: "users do not reload", happens: lasting("slow", user)},
		"one of two replicas": {
			options: hooked, want: "prompt/modified/after-fault", because: "the other one takes over within a minute",
			happens: func(s *harness) {
				s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.1"})
				s.wait(2 * time.Minute)
				lasting("down", replica)(s)
			},
		},
	})
}

// besideHung is a change that is not acted on while writes of StatefulSets in a namespace have no answer.
func besideHung(namespace string, names ...string) func(s *harness) {
	return func(s *harness) {
		s.begin()
		s.oracle.Fault(Fault{At: s.now, Kind: writesHang, Scope: "statefulsets", Begin: true})
		for _, name := range names {
			s.oracle.Request(s.call(replica, "patch", world.Key{Resource: world.StatefulSets, Namespace: namespace, Name: name}, nil))
		}
		s.set(configMap("app"), "2")
		s.wait(5 * time.Minute)
		s.tick()
	}
}

func TestPromptAfterFaults(t *testing.T) {
	t.Parallel()
	hooked := Options{Webhook: true}
	runLaw(t, "prompt", map[string]lawCase{
		"just over": {options: hooked, because: "a minute for backoff", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("api-errors", "", 30*time.Second)
			s.wait(time.Minute)
			s.tick()
		}},
		"long over": {options: hooked, want: "prompt/modified/after-fault", because: "backoff is over", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("api-errors", "", 30*time.Second)
			s.wait(2 * time.Minute)
			s.tick()
		}},
		"a write has no answer yet": {options: hooked, because: "it is given up after 10 s", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("writes-hang", "deployments", 8*time.Second)
			s.wait(30 * time.Second)
			s.tick()
		}},
		"a write was not given up": {options: hooked, want: "prompt/modified/after-fault", because: "10 s are the most that it may hang", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("writes-hang", "deployments", 8*time.Second)
			s.wait(40 * time.Second)
			s.tick()
		}},
		"denials just over": {options: hooked, because: "denials are retried more rarely", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("denied", "configmaps", 30*time.Second)
			s.wait(5 * time.Minute)
			s.tick()
		}},
		"permissions just back": {options: hooked, because: "informers pause for up to a minute", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("permissions", "configmaps", 30*time.Second)
			s.wait(time.Minute)
			s.tick()
		}},
	})
}

func TestPromptWhileBlindOrSlow(t *testing.T) {
	t.Parallel()
	hooked := Options{Webhook: true}
	runLaw(t, "prompt", map[string]lawCase{
		"blind for long": {options: hooked, want: "prompt/modified/blind", because: "what is tracked can be read", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.wait(10 * time.Minute)
			s.set(configMap("app"), "2")
			s.wait(5 * time.Minute)
			s.tick()
		}},
		"blind for a while": {options: hooked, because: "what is tracked is looked at slowly", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.wait(10 * time.Minute)
			s.set(configMap("app"), "2")
			s.wait(4 * time.Minute)
			s.tick()
		}},
		"blind since the change": {options: hooked, because: "it takes time to find out", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(5 * time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.wait(4 * time.Minute)
			s.tick()
		}},
		"blind without the permission to read": {options: hooked, because: "nothing can be read", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.oracle.Fault(Fault{At: s.now, Kind: "denied", Scope: "configmaps", Begin: true})
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.tick()
		}},
		"workloads are not watched": {options: hooked, because: "only configuration is judged", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "deployments", Begin: true})
			s.set(configMap("app"), "2")
			s.wait(time.Hour)
			s.tick()
		}},
		"slow requests": {options: hooked, because: "the network is slow", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			for range 10 {
				call := s.call(replica, "get", configMap("app"), nil)
				s.oracle.Request(call)
				s.wait(2 * time.Second)
				s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 504})
			}
			s.tick()
		}},
		"the user hammers the workload": {options: hooked, because: "each write may spoil an attempt", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			for i := range 20 {
				s.wait(time.Second)
				s.edit(cart, func(o world.Object) { world.Section(o, "spec")["replicas"] = int64(i) })
			}
		}},
	})
}

func TestPromptDuringAHandOver(t *testing.T) {
	t.Parallel()
	const other = "replica-1.1"
	hooked := Options{Webhook: true}
	leaves := func(kind string, reload time.Duration) func(s *harness) {
		return func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: other})
			s.wait(time.Minute)
			s.begin()
			if kind == "killed" {
				s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica, Begin: true})
			}
			s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: "replica-0", Begin: true})
			s.set(configMap("app"), "2")
			s.wait(reload)
			s.oracle.Leader(other, s.now)
			s.reload(cart, "b", "configmap/app modified")
		}
	}
	// What comes on top of the hand-over: 5 s for the new leader's begin, 10 s for the gates, 5 s for the rest.
	runLaw(t, "prompt", map[string]lawCase{
		"the leader is killed":                   {options: hooked, because: "its lease runs out within 20 s", happens: leaves("killed", 39*time.Second)},
		"a killed leader leads on":               {options: hooked, want: "prompt/modified/after-fault", because: "20 s are the most", happens: leaves("killed", 41*time.Second)},
		"the leader is frozen":                   {options: hooked, because: "its lease runs out within 20 s", happens: leaves("frozen", 39*time.Second)},
		"a frozen leader leads on":               {options: hooked, want: "prompt/modified/after-fault", because: "20 s are the most", happens: leaves("frozen", 41*time.Second)},
		"the leader is stopped":                  {options: hooked, because: "it gives the lease back", happens: leaves("stopped", 22*time.Second)},
		"a stopped leader keeps the lease":       {options: hooked, want: "prompt/modified/after-fault", because: "3 s are the most", happens: leaves("stopped", 24*time.Second)},
		"a longer lease":                         {options: Options{Webhook: true, Lease: 45 * time.Second}, because: "the flags say so", happens: leaves("killed", 69*time.Second)},
		"longer than the longer lease":           {options: Options{Webhook: true, Lease: 45 * time.Second}, want: "prompt/modified/after-fault", because: "5 s after the lease are the most", happens: leaves("killed", 71*time.Second)},
		"stopped, the lease is looked at seldom": {options: Options{Webhook: true, Retry: 4 * time.Second}, because: "the flags say so", happens: leaves("stopped", 29*time.Second)},
		"killed, and reported again when gone": {options: hooked, want: "prompt/modified/after-fault", because: "it is the same outage", happens: func(s *harness) {
			leaves("killed", 10500*time.Millisecond)(s)
			s.set(configMap("app"), "3")
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica, Begin: true})
			s.wait(35 * time.Second)
			s.tick()
		}},
		"the process is back": {options: hooked, want: "prompt/modified", because: "another one led before", happens: func(s *harness) {
			leaves("killed", 30*time.Second)(s)
			s.oracle.Fault(Fault{At: s.now, Kind: "killed", Scope: "replica-0"})
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-0.2"})
			s.set(configMap("app"), "3")
			s.wait(30 * time.Second)
			s.tick()
		}},
		"the other one has just started": {options: hooked, because: "it may not know the world yet", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: other})
			s.wait(10 * time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica, Begin: true})
			s.set(configMap("app"), "2")
			s.wait(time.Minute)
			s.tick()
		}},
		"both are killed": {options: hooked, because: "none is left to take over", happens: func(s *harness) {
			leaves("killed", 30*time.Second)(s)
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: other, Begin: true})
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.2"})
			s.wait(time.Minute)
			s.tick()
		}},
	})
}

// tick lets the oracle notice that time has gone by.
func (s *harness) tick() {
	s.request(replica, "update", world.Key{Resource: world.Leases, Name: "lease"}, nil)
}
