package oracle

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// away takes the definition of Rollouts away, of which one exists.
func away(kind string, lasting time.Duration, happens ...func(s *harness)) func(s *harness) {
	return func(s *harness) {
		s.begin()
		s.sends("create", pay, manifest(pay, "one"), "a")
		s.wait(5 * time.Minute)
		s.oracle.Fault(Fault{At: s.now, Kind: kind, Scope: rollouts, Begin: true})
		s.wait(lasting)
		for _, next := range happens {
			next(s)
		}
	}
}

func patchOf(key world.Key) func(s *harness) {
	return func(s *harness) { s.request(replica, "patch", key, nil) }
}

func TestWorkloadsOfAKindThatIsAway(t *testing.T) {
	t.Parallel()
	custom := Options{CustomKind: true}
	back := func(s *harness) { s.oracle.Fault(Fault{At: s.now, Kind: kindAway, Scope: rollouts}) }
	later := func(d time.Duration) func(s *harness) { return func(s *harness) { s.later(d) } }
	changes := func(s *harness) { s.set(configMap("app"), "2") }
	reloadsCart := func(s *harness) {
		changes(s)
		s.wait(5 * time.Second)
		s.reload(cart, "b", "configmap/app modified")
	}
	runLaw(t, "prompt", map[string]lawCase{
		"written":          {options: custom, want: "prompt/away", because: "they are gone", happens: away(kindAway, 0, reloadsCart, later(2*time.Minute), patchOf(pay))},
		"written at first": {options: custom, because: "the kind is looked up twice", happens: away(kindAway, 0, reloadsCart, later(20*time.Second), patchOf(pay))},
		"written by a user": {options: custom, because: "it is no decision of the program", happens: away(kindAway, 0, reloadsCart, later(2*time.Minute), func(s *harness) {
			s.request(user, "patch", pay, nil)
		})},
		"another kind":    {options: custom, because: "that is installed", happens: away(kindAway, 0, reloadsCart, later(2*time.Minute), patchOf(cart))},
		"only discovered": {options: custom, because: "they may exist", happens: away(kindContradicted, 0, reloadsCart, later(2*time.Minute), patchOf(pay))},
		"another fault": {options: custom, because: "the program may not know it", happens: away(kindAway, 0, func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "api-away", Begin: true})
		}, later(2*time.Minute), patchOf(pay))},
		"away again": {options: custom, because: "it may look less often than at first", happens: away(kindAway, 0, reloadsCart, back, later(30*time.Second), func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: kindAway, Scope: rollouts, Begin: true})
		}, later(90*time.Second), patchOf(pay))},
		"a replica that starts": {options: custom, because: "it has never seen them", happens: away(kindAway, 0, func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: "replica-1.1"})
		}, reloadsCart, later(2*time.Minute), patchOf(pay))},
		"change meanwhile":         {options: custom, because: "nothing can be reloaded", happens: away(kindAway, 0, reloadsCart, later(5*time.Minute))},
		"change lost":              {options: custom, want: "prompt/modified/after-fault", because: "it is due when the kind is back", happens: away(kindAway, 0, reloadsCart, later(5*time.Minute), back, later(5*time.Minute))},
		"workloads of other kinds": {options: custom, want: "prompt/modified", because: "they are reloaded as always", happens: away(kindAway, 0, changes, later(time.Minute))},
	})
}

func TestKindThatIsAwayIsNoFailure(t *testing.T) {
	t.Parallel()
	custom := Options{CustomKind: true}
	warn := func(note string) func(s *harness) {
		return func(s *harness) { s.warn(cart, note) }
	}
	scrape := func(after time.Duration, value float64) func(s *harness) {
		return func(s *harness) {
			s.wait(after)
			s.scrapeWatch(replica, "rollouts.argoproj.io", value)
		}
	}
	asks := func(s *harness) { s.request(replica, "watch", world.Key{Resource: world.Rollouts}, nil) }
	refused := func(s *harness) {
		call := s.call(replica, "watch", world.Key{Resource: world.Rollouts}, nil)
		s.oracle.Request(call)
		s.oracle.Reply(world.Reply{Call: call, At: s.now, Status: 404})
	}
	gone := func(s *harness) { s.oracle.Fault(Fault{At: s.now, Kind: kindAway, Scope: rollouts, Begin: true}) }
	back := func(s *harness) { s.oracle.Fault(Fault{At: s.now, Kind: kindAway, Scope: rollouts}) }
	runLaw(t, "visible", map[string]lawCase{
		"Event":                    {options: custom, want: "visible/not-installed", because: "there is nothing to watch", happens: away(kindAway, time.Minute, warn("rollouts.argoproj.io cannot be watched"))},
		"Event about another":      {options: custom, because: "that may fail", happens: away(kindAway, time.Minute, warn("secrets cannot be watched"))},
		"metric":                   {options: custom, want: "visible/not-installed", because: "there is nothing to watch", happens: away(kindAway, 0, scrape(2*time.Minute, 0))},
		"metric at first":          {options: custom, because: "the kind is looked up twice", happens: away(kindAway, 0, scrape(30*time.Second, 0))},
		"healthy":                  {options: custom, because: "nothing fails", happens: away(kindAway, 0, scrape(2*time.Minute, 1))},
		"Event of a contradiction": {options: custom, because: "the workloads are not seen", happens: away(kindContradicted, time.Minute, asks, warn("rollouts.argoproj.io cannot be watched"))},
		"no Event of a contradiction": {options: custom, want: "visible/event", because: "the workloads are not seen", happens: away(kindContradicted, time.Minute,
			refused, scrape(5*time.Minute, 0))},
		"contradiction of a kind that is not installed": {options: custom, because: "there is nothing to watch", happens: away(kindContradicted, time.Minute,
			refused, gone, scrape(5*time.Minute, 1))},
		"contradiction of a kind that was not installed meanwhile": {options: custom, because: "it is one again for a short time", happens: away(kindContradicted, time.Minute,
			refused, gone, scrape(5*time.Minute, 1), back, refused, scrape(time.Minute, 1))},
		"contradiction since a kind was not installed": {options: custom, want: "visible/event", because: "the workloads are not seen", happens: away(kindContradicted, time.Minute,
			refused, gone, scrape(5*time.Minute, 1), back, refused, scrape(5*time.Minute, 0))},
	})
}
