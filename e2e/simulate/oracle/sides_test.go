package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// second is a replica of the second installation.
const second = "replica-1.1"

// besideEachOther are two installations: the first selects workloads without the label note, the second those with it.
func besideEachOther() Options {
	return Options{
		Second: func(client string) bool { return replicaOf(client) == replicaOf(second) },
		Sides: func(_ string, _, labels map[string]string) Sides {
			return Sides{First: labels["note"] == "", Second: labels["note"] != ""}
		},
	}
}

// startSecond has a replica of the second installation lead it.
func (s *harness) startSecond() {
	s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: second})
	s.request(second, "list", world.Key{Resource: world.Deployments}, nil)
	s.write(second, "create", world.Key{Resource: world.Leases, Namespace: "pod-reloader", Name: "second"},
		world.Object{"spec": world.Object{"holderIdentity": second}})
	s.wait(10 * time.Minute)
	s.begin()
}

// note labels cart, or takes the label away.
func (s *harness) note(value string) {
	s.edit(cart, func(o world.Object) {
		labels := world.Object{"app": "cart"}
		if value != "" {
			labels["note"] = value
		}
		world.Section(o, "metadata")["labels"] = labels
	})
}

func TestOnlyTheInstallationThatSelectsAWorkloadWritesIt(t *testing.T) {
	t.Parallel()
	writes := func(client string, before ...func(s *harness)) func(s *harness) {
		return func(s *harness) {
			s.startSecond()
			for _, do := range before {
				do(s)
			}
			s.request(client, "patch", cart, []byte(`{"metadata":{"annotations":{}}}`))
		}
	}
	moves := func(s *harness) { s.note("b") }
	settles := func(s *harness) { s.wait(time.Minute) }
	runLaw(t, "scope", map[string]lawCase{
		"the one that selects it":        {options: besideEachOther(), because: "it leads", happens: writes(replica)},
		"the other one":                  {options: besideEachOther(), want: "scope/sides", because: "it has nothing to do with it", happens: writes(second)},
		"the new one":                    {options: besideEachOther(), because: "the workload changed sides", happens: writes(second, moves, settles)},
		"the former one":                 {options: besideEachOther(), want: "scope/sides", because: "the workload changed sides", happens: writes(replica, moves, settles)},
		"the former one, soon afterward": {options: besideEachOther(), because: "its watch may be late", happens: writes(replica, moves)},
	})
}

func TestEachOfTwoInstallationsHasALeader(t *testing.T) {
	t.Parallel()
	s := newHarness(t, besideEachOther())
	s.startSecond()
	assert.True(t, s.oracle.leads(replica), "the first installation has a leader")
	assert.True(t, s.oracle.leads(second), "the second installation has a leader of its own")
	assert.False(t, s.oracle.leads("replica-0.2"), "an installation has only one leader")
	assert.False(t, s.oracle.faults.covered(replica, s.now), "no replica of the other installation takes over")
	assert.True(t, s.oracle.faults.working(), "both installations have a replica")
	s.oracle.Fault(Fault{At: s.now, Kind: "down", Scope: second, Begin: true})
	assert.False(t, s.oracle.faults.working(), "one installation has no replica")
}

func TestAWorkloadThatChangesSidesKeepsWhatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	s := newHarness(t, besideEachOther())
	s.startSecond()
	s.note("b")
	s.wait(time.Second)
	s.set(configMap("app"), "2")
	s.later(5 * time.Minute)
	s.expectOnly("prompt", "prompt/modified", "the second installation has the record of the first")
}

func TestWorkloadsThatAreTrackedInPartAreNotJudged(t *testing.T) {
	t.Parallel()
	options := besideEachOther()
	options.Sides = func(string, map[string]string, map[string]string) Sides { return Sides{First: true, Second: true} }
	for _, half := range []bool{true, false} {
		options.HalfRead = half
		s := newHarness(t, options)
		s.startSecond()
		s.edit(cart, func(o world.Object) { setAnnotation(o, pausePeriod, "1m") })
		w := s.oracle.workloads[idOf(cart)]
		assert.Equal(t, half, w.inPart)
		assert.Equal(t, half, w.unclear)
		assert.True(t, w.shared, "both installations track the workload")
		assert.False(t, w.moved, "the workload belongs to the same installations as before")
	}
}
