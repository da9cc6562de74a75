package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// beginMatching creates a workload that tracks what an expression matches, with a record of that.
func beginMatching(s *harness) {
	beginAsking(world.Object{"secret." + otherDomain + "reload": "db.*", "configmap." + otherDomain + "reload": "named"})(s)
	s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "v1") })
	s.later(time.Minute)
}

func TestPromptWhereCreationsCount(t *testing.T) {
	t.Parallel()
	counted := Options{ReloadOnCreate: true}
	runLaw(t, "prompt", map[string]lawCase{
		"a name": {options: counted, want: "prompt/created", because: "the flag says so", happens: func(s *harness) {
			beginMatching(s)
			s.set(configMap("named"), "1")
			s.later(time.Minute)
		}},
		"an expression": {options: counted, want: "prompt/appeared", because: "the flag says so", happens: func(s *harness) {
			beginMatching(s)
			s.set(secret("db-2"), "1")
			s.later(time.Minute)
		}},
		"an expression, and a label of the workload": {
			options: counted, want: "prompt/appeared", because: "that asks for nothing else", happens: func(s *harness) {
				beginMatching(s)
				s.set(secret("db-2"), "1")
				s.edit(cart, func(o world.Object) { setAnnotation(o, "example.com/note", "x") })
				s.later(time.Minute)
			},
		},
		"an expression, reloaded": {options: counted, because: "that is what it is for", happens: func(s *harness) {
			beginMatching(s)
			s.set(secret("db-2"), "1")
			s.wait(2 * time.Second)
			s.reload(cart, "b")
			s.later(time.Minute)
		}},
		"an expression, and the workload asks anew": {options: counted, because: "it may be taken for one that was selected later", happens: func(s *harness) {
			beginMatching(s)
			s.set(secret("db-2"), "1")
			s.edit(cart, func(o world.Object) { setAnnotation(o, otherAuto, "true") })
			s.later(time.Minute)
		}},
		"an expression, and a fault": {options: counted, because: "no replica need have seen it", happens: func(s *harness) {
			beginMatching(s)
			s.set(secret("db-2"), "1")
			s.fault("frozen", replica, 2*time.Second)
			s.later(time.Hour)
		}},
		"an expression, without a record": {options: counted, because: "nothing is known yet", happens: func(s *harness) {
			beginMatching(s)
			s.edit(cart, func(o world.Object) { setAnnotation(o, prefix+recordAnnotation, "") })
			s.set(secret("db-2"), "1")
			s.later(time.Minute)
		}},
		"an expression, without the flag": {because: "creations do not count", happens: func(s *harness) {
			beginMatching(s)
			s.set(secret("db-2"), "1")
			s.later(time.Minute)
		}},
	})
}

func TestKeptWhereCreationsCount(t *testing.T) {
	t.Parallel()
	counted := Options{ReloadOnCreate: true}
	reload := func(s *harness) {
		s.wait(2 * time.Second)
		s.reload(cart, "b")
		s.rollout(cart)
	}
	runLaw(t, "kept", map[string]lawCase{
		"created": {options: counted, because: "the flag says so", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.set(secret("db"), "1")
			reload(s)
		}},
		"deleted": {options: counted, want: "kept/program/touched", because: "deletions do not count", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("extra"))
			reload(s)
		}},
		"back with the same content": {options: counted, want: "kept/program/touched", because: "the pods have it", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.remove(user, configMap("extra"))
			s.wait(time.Minute)
			s.set(configMap("extra"), "1")
			reload(s)
		}},
	})
}

func TestPendingAppearanceIsOwed(t *testing.T) {
	t.Parallel()
	s := newHarness(t, Options{ReloadOnCreate: true})
	beginMatching(s)
	law := &appearedLaw{ledger: s.oracle.ledger}
	assert.False(t, law.owes(s.now), "nothing has appeared")
	s.set(secret("db-2"), "1")
	assert.True(t, law.owes(s.now), "the Secret matches the pattern, and has appeared")
	s.reload(cart, "b")
	s.later(time.Second)
	assert.False(t, law.owes(s.now), "the workload was reloaded")
}
