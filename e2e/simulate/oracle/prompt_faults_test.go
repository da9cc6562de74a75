package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestPromptUnderFaultsOfAPlace(t *testing.T) {
	t.Parallel()
	lasting := func(kind, scope string) func(s *harness) {
		return func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: scope, Begin: true})
			s.set(configMap("app"), "2")
			s.later(5 * time.Minute)
		}
	}
	runLaw(t, "prompt", map[string]lawCase{
		"whole program":       {because: "the API server is away", happens: lasting("api-away", "")},
		"own namespace":       {because: "its writes hang", happens: lasting("namespace-webhook", "namespaces/shop")},
		"own object":          {because: "its writes fail", happens: lasting("api-errors", "deployments/shop/cart")},
		"listed object":       {because: "it cannot be read", happens: lasting("api-errors", "configmaps/shop/app")},
		"resource":            {because: "it may be needed", happens: lasting("permissions", "configmaps")},
		"own kind":            {because: "its writes have no answer", happens: lasting(writesHang, "deployments")},
		"all kinds":           {because: "its writes have no answer", happens: lasting(writesHang, "")},
		"unknown scope":       {because: "it may be anything", happens: lasting("whatever", "somewhere")},
		"only replica":        {because: "no replica works", happens: lasting("down", replica)},
		"only replica frozen": {because: "no replica works", happens: lasting("frozen", "replica-0")},
		"other namespace": {
			want: "prompt/modified/neighbour", because: "faults elsewhere are no excuse",
			happens: func(s *harness) { s.namespace("bank", nil); lasting("namespace-webhook", "bank")(s) },
		},
		"other kind": {
			want: "prompt/modified/neighbour", because: "it has its own writes", happens: lasting(writesHang, "statefulsets"),
		},
		"other kind, a write of its namespace hangs": {
			want: "prompt/modified/neighbour", because: "the namespace has another slot soon", happens: besideHung("shop", "db"),
		},
		"other kind, a write of another namespace hangs": {
			want: "prompt/modified/neighbour", because: "that holds up its own namespace only", happens: besideHung("bank", "db"),
		},
		"other kind, as many writes of the namespace hang as it has slots": {
			because: "no slot is left", happens: besideHung("shop", "a", "b", "c", "d", "e", "f", "g", "h"),
		},
		"other object": {
			want: "prompt/modified", because: "faults elsewhere are no excuse",
			happens: lasting("api-errors", "deployments/shop/web"),
		},
		"user": {want: "prompt/modified", because: "users do not reload", happens: lasting("slow", user)},
		"one of two replicas": {
			want: "prompt/modified/after-fault", because: "the other one takes over within a minute",
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
		s.later(5 * time.Minute)
	}
}

func TestPromptAfterFaults(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"just over": {because: "a minute for backoff", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("api-errors", "", 30*time.Second)
			s.later(time.Minute)
		}},
		"long over": {want: "prompt/modified/after-fault", because: "backoff is over", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("api-errors", "", 30*time.Second)
			s.later(2 * time.Minute)
		}},
		"a write has no answer yet": {because: "it is given up after 10 s", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("writes-hang", "deployments", 8*time.Second)
			s.later(30 * time.Second)
		}},
		"a write was not given up": {want: "prompt/modified/after-fault", because: "10 s are the most that it may hang", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("writes-hang", "deployments", 8*time.Second)
			s.later(40 * time.Second)
		}},
		"denials just over": {because: "denials are retried more rarely", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("denied", "configmaps", 30*time.Second)
			s.later(5 * time.Minute)
		}},
		"permissions just back": {because: "informers pause for up to a minute", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.fault("permissions", "configmaps", 30*time.Second)
			s.later(time.Minute)
		}},
	})
}

func TestPromptWhileBlindOrSlow(t *testing.T) {
	t.Parallel()
	runLaw(t, "prompt", map[string]lawCase{
		"blind for long": {want: "prompt/modified/blind", because: "what is tracked can be read", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.wait(10 * time.Minute)
			s.set(configMap("app"), "2")
			s.later(5 * time.Minute)
		}},
		"blind for a while": {because: "what is tracked is looked at slowly", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.wait(10 * time.Minute)
			s.set(configMap("app"), "2")
			s.later(4 * time.Minute)
		}},
		"blind since the change": {because: "it takes time to find out", happens: func(s *harness) {
			s.begin()
			s.set(configMap("app"), "2")
			s.wait(5 * time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.later(4 * time.Minute)
		}},
		"blind without the permission to read": {because: "nothing can be read", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "configmaps", Begin: true})
			s.oracle.Fault(Fault{At: s.now, Kind: "denied", Scope: "configmaps", Begin: true})
			s.set(configMap("app"), "2")
			s.later(time.Hour)
		}},
		"workloads are not watched": {because: "only configuration is judged", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "watch-refused", Scope: "deployments", Begin: true})
			s.set(configMap("app"), "2")
			s.later(time.Hour)
		}},
		"slow requests": {because: "the network is slow", happens: func(s *harness) {
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
		"the user hammers the workload": {because: "each write may spoil an attempt", happens: func(s *harness) {
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
		"the leader is killed":                   {because: "its lease runs out within 20 s", happens: leaves("killed", 39*time.Second)},
		"a killed leader leads on":               {want: "prompt/modified/after-fault", because: "20 s are the most", happens: leaves("killed", 41*time.Second)},
		"the leader is frozen":                   {because: "its lease runs out within 20 s", happens: leaves("frozen", 39*time.Second)},
		"a frozen leader leads on":               {want: "prompt/modified/after-fault", because: "20 s are the most", happens: leaves("frozen", 41*time.Second)},
		"the leader is stopped":                  {because: "it gives the lease back", happens: leaves("stopped", 22*time.Second)},
		"a stopped leader keeps the lease":       {want: "prompt/modified/after-fault", because: "3 s are the most", happens: leaves("stopped", 24*time.Second)},
		"a longer lease":                         {options: Options{Lease: 45 * time.Second}, because: "the flags say so", happens: leaves("killed", 69*time.Second)},
		"longer than the longer lease":           {options: Options{Lease: 45 * time.Second}, want: "prompt/modified/after-fault", because: "5 s after the lease are the most", happens: leaves("killed", 71*time.Second)},
		"stopped, the lease is looked at seldom": {options: Options{Retry: 4 * time.Second}, because: "the flags say so", happens: leaves("stopped", 29*time.Second)},
		"killed, and reported again when gone": {want: "prompt/modified/after-fault", because: "it is the same outage", happens: func(s *harness) {
			leaves("killed", 10500*time.Millisecond)(s)
			s.set(configMap("app"), "3")
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica, Begin: true})
			s.later(35 * time.Second)
		}},
		"the process is back": {want: "prompt/modified", because: "another one led before", happens: func(s *harness) {
			leaves("killed", 30*time.Second)(s)
			s.oracle.Fault(Fault{At: s.now, Kind: "killed", Scope: "replica-0"})
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-0.2"})
			s.set(configMap("app"), "3")
			s.later(30 * time.Second)
		}},
		"the other one has just started": {because: "it may not know the world yet", happens: func(s *harness) {
			s.begin()
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: other})
			s.wait(10 * time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: replica, Begin: true})
			s.set(configMap("app"), "2")
			s.later(time.Minute)
		}},
		"both are killed": {because: "none is left to take over", happens: func(s *harness) {
			leaves("killed", 30*time.Second)(s)
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: other, Begin: true})
			s.set(configMap("app"), "3")
			s.wait(time.Second)
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.2"})
			s.later(time.Minute)
		}},
	})
}

// tick lets the oracle notice that time has gone by.
