package oracle

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// denies withdraws a permission to write, and changes app.
func (s *harness) denies(scope string) {
	s.begin()
	s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: scope, Begin: true})
	s.set(configMap("app"), "2")
}

func TestDeniedWritesAreVisible(t *testing.T) {
	t.Parallel()
	denied := func(scope string, after func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.denies(scope)
			after(s)
			s.later(5 * time.Minute)
		}
	}
	gauges := func(value float64) func(s *harness) {
		return denied("deployments", func(s *harness) {
			s.event(cart, "failed", "Warning", "ReloadFailed")
			s.wait(3 * time.Minute)
			s.oracle.Metrics(replica, map[string]*dto.MetricFamily{dueReloads: {Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}}}}, s.now)
		})
	}
	why := func(printed string) func(s *harness) {
		return denied("deployments", func(s *harness) {
			s.event(cart, "failed", "Warning", "ReloadFailed")
			s.wait(3 * time.Minute)
			q, ok := s.oracle.AskWhy(s.now)
			require.True(s.t, ok, "the oracle asks for an explanation")
			s.oracle.Why(q, printed, s.now)
		})
	}
	runLaw(t, "visible", map[string]lawCase{
		"reported":          {because: "an Event says so", happens: denied("deployments", func(s *harness) { s.event(cart, "failed", "Warning", "ReloadFailed") })},
		"not reported":      {want: "visible/denied", because: "nothing says why it is late", happens: denied("deployments", func(*harness) {})},
		"another reason":    {want: "visible/denied", because: "it is about something else", happens: denied("deployments", func(s *harness) { s.event(cart, "other", "Warning", "ObjectMissing") })},
		"about another one": {want: "visible/denied", because: "it is about another workload", happens: denied("deployments", func(s *harness) { s.event(nightly, "failed", "Warning", "ReloadFailed") })},
		"changed back": {because: "nothing is due", happens: denied("deployments", func(s *harness) {
			s.wait(time.Second)
			s.set(configMap("app"), "1")
		})},
		"no Events either": {because: "no Event can be written", happens: denied("deployments", func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: "events", Begin: true})
		})},
		"counted":            {because: "one reload is due", happens: gauges(1)},
		"not counted":        {want: "visible/due", because: "one reload is due", happens: gauges(0)},
		"explained":          {because: "it prints the Event", happens: why("a reload is due\n\nWarning 3m ago, ReloadFailed: deployments.apps \"cart\" is forbidden\n")},
		"not explained":      {want: "visible/denied-why", because: "nothing says why it is late", happens: why("a reload is due\n")},
		"reported long ago":  {because: "the same is not said twice", happens: func(s *harness) { deniedAgain(s, 10*time.Second) }},
		"reported once only": {want: "visible/denied", because: "the permission was there in between", happens: func(s *harness) { deniedAgain(s, 5*time.Minute) }},
	})
}

// deniedAgain is a permission that is missing twice, with one Event about the first time.
func deniedAgain(s *harness, gap time.Duration) {
	s.denies("deployments")
	s.wait(30 * time.Second)
	s.event(cart, "failed", "Warning", "ReloadFailed")
	s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: "deployments"})
	if gap > time.Minute {
		s.reload(cart, "b", "configmap/app modified")
	}
	s.wait(gap)
	s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: "deployments", Begin: true})
	if gap > time.Minute {
		s.set(configMap("app"), "3")
	}
	s.later(5 * time.Minute)
}

func TestDeniedWritesHoldUpNothingElse(t *testing.T) {
	t.Parallel()
	late := func(scope string, then func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.denies(scope)
			s.wait(time.Second)
			then(s)
			s.tick()
		}
	}
	back := func(scope string, after time.Duration) func(s *harness) {
		return late(scope, func(s *harness) {
			s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: scope})
			s.wait(after)
		})
	}
	minute := func(s *harness) { s.wait(time.Minute) }
	runLaw(t, "prompt", map[string]lawCase{
		"the workload's own kind": {because: "it cannot be written", happens: late("deployments", minute)},
		"another kind":            {want: "prompt/modified", because: "the permission to write this one is there", happens: late("statefulsets", minute)},
		"Events":                  {want: "prompt/modified", because: "a reload needs none", happens: late("events", minute)},
		"the lease":               {because: "nothing leads", happens: late("leases", minute)},
		"given back":              {because: "it is tried again every half minute", happens: back("deployments", 30*time.Second)},
		"given back ago":          {want: "prompt/modified/after-fault", because: "it is tried again every half minute", happens: back("deployments", 90*time.Second)},
	})
	runLaw(t, "explained", map[string]lawCase{
		"Events denied": {because: "they cannot be written", happens: func(s *harness) {
			s.denies("events")
			s.wait(time.Second)
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.quiet()
		}},
		"Events allowed again": {want: "explained/event-missing/after-fault", because: "they are made up for", happens: func(s *harness) {
			s.denies("events")
			s.wait(time.Second)
			s.reloadSilently(cart, "b", "configmap/app modified")
			s.rollout(cart)
			s.oracle.Fault(Fault{At: s.now, Kind: writesDenied, Scope: "events"})
			s.quiet()
		}},
	})
}

func TestReadsMayRepeatWhereWritesAreDenied(t *testing.T) {
	t.Parallel()
	runLaw(t, "cost", map[string]lawCase{"read again": {because: "a fault lasts", happens: func(s *harness) {
		s.denies("deployments")
		for range 2 {
			s.request(replica, "get", world.Key{Resource: world.ConfigMaps, Namespace: "shop", Name: "extra"}, nil)
			s.wait(time.Minute)
		}
	}}})
}
