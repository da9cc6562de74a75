package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// upgrades changes the flags about restarts: some replicas go by each for a minute.
func (s *harness) upgrades(p Policy, meanwhile func(*harness)) {
	s.oracle.Repolicy(s.now, p)
	meanwhile(s)
	s.wait(time.Minute)
	p.Clear = true
	s.oracle.Repolicy(s.now, p)
	s.later(time.Minute)
}

func idle(*harness) {}

// asksAndDeletes has a workload that tracks what it references, of which an optional object is deleted.
func asksAndDeletes(s *harness) {
	beginAsking(auto())(s)
	s.remove(user, configMap("extra"))
	s.later(time.Minute)
}

func TestDeletionsCountAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	deletes := Options{ReloadOnDelete: true}
	waits := func(s *harness) {
		s.later(time.Minute)
	}
	runLaw(t, "prompt", map[string]lawCase{
		"that do not count": {because: "no flag says so", happens: func(s *harness) {
			asksAndDeletes(s)
			waits(s)
		}},
		"that count later": {want: "prompt/deleted", because: "earlier ones count, too", happens: func(s *harness) {
			asksAndDeletes(s)
			s.upgrades(Policy{ReloadOnDelete: true}, idle)
			waits(s)
		}},
		"that count no more": {options: deletes, because: "a replica with the new flag may lead", happens: func(s *harness) {
			beginAsking(auto())(s)
			s.upgrades(Policy{}, func(s *harness) {
				s.remove(user, configMap("extra"))
				waits(s)
			})
			waits(s)
		}},
		"of what pods require, to be held": {options: Options{ReloadMissingRequired: true}, because: "a replica with the new flag may lead", happens: func(s *harness) {
			s.begin()
			s.upgrades(Policy{}, func(s *harness) {
				s.remove(user, configMap("app"))
				waits(s)
			})
			waits(s)
		}},
		"of what pods require, to be reloaded": {want: "prompt/deleted", because: "earlier ones count, too", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.wait(time.Minute)
			s.upgrades(Policy{ReloadMissingRequired: true}, idle)
			waits(s)
		}},
	})
}

func TestKeptWhileFlagsDiffer(t *testing.T) {
	t.Parallel()
	reloads := func(s *harness) {
		s.wait(time.Second)
		s.reload(cart, "b", "configmap/app deleted")
	}
	runLaw(t, "kept", map[string]lawCase{
		"nothing changed": {want: "kept/program", because: "an upgrade restarts nothing", happens: func(s *harness) {
			s.begin()
			s.upgrades(Policy{Revision: true}, func(s *harness) {
				s.wait(time.Second)
				s.reload(cart, "b", "configmap/none modified")
				s.rollout(cart)
			})
		}},
		"required one deleted": {because: "a replica with the new flag may lead", happens: func(s *harness) {
			s.begin()
			s.remove(user, configMap("app"))
			s.upgrades(Policy{ReloadMissingRequired: true}, reloads)
		}},
		"required one deleted later": {options: Options{ReloadMissingRequired: true}, want: "kept/missing-required", because: "every replica holds it", happens: func(s *harness) {
			s.begin()
			s.upgrades(Policy{}, idle)
			s.remove(user, configMap("app"))
			reloads(s)
		}},
		"deleted while it may count": {because: "a replica with the new flag may lead", happens: func(s *harness) {
			asksAndDeletes(s)
			s.upgrades(Policy{ReloadOnDelete: true}, func(s *harness) {
				s.reload(cart, "b", "configmap/extra deleted")
				s.rollout(cart)
			})
		}},
	})
}

func TestKeptWithWhatAnotherStrategyHasWritten(t *testing.T) {
	t.Parallel()
	env := Options{Strategy: strategyEnvVars}
	drops := func(p Policy) func(s *harness) {
		return func(s *harness) {
			s.beginWithChange()
			s.restart("b", func(o world.Object) world.Object {
				return withEnv(o, variable("STAKATER_APP_CONFIGMAP", sumOf("key=2")))
			})
			s.upgrades(p, idle)
			s.edit(cart, func(o world.Object) {
				container, _ := items(world.Section(o, "spec", "template", "spec"), "containers")[0].(map[string]any)
				delete(container, "env")
			})
			s.rollout(cart)
		}
	}
	runLaw(t, "kept", map[string]lawCase{
		"dropped with another strategy": {options: env, want: "kept/patch-merge", because: "it is restored", happens: drops(Policy{Strategy: strategyAnnotations})},
		"dropped without a strategy":    {options: env, because: "it is a variable like any other", happens: drops(Policy{})},
	})
}

func TestStrategyIsWrittenByEitherFlag(t *testing.T) {
	t.Parallel()
	env := Options{Strategy: strategyEnvVars}
	plain := func(o world.Object) world.Object { return o }
	changes := func(s *harness) {
		s.set(configMap("app"), "2")
		s.wait(time.Second)
		s.restart("b", plain)
	}
	runLaw(t, "explained", map[string]lawCase{
		"before": {options: env, want: "explained/variable-stale", because: "the flag says so", happens: func(s *harness) {
			s.begin()
			changes(s)
		}},
		"meanwhile": {options: env, because: "the webhook may have the new flag", happens: func(s *harness) {
			s.begin()
			s.upgrades(Policy{}, changes)
		}},
		"no more": {options: env, because: "no flag says so", happens: func(s *harness) {
			s.begin()
			s.upgrades(Policy{}, idle)
			changes(s)
		}},
		"from now on": {want: "explained/variable-stale", because: "the flag says so", happens: func(s *harness) {
			s.begin()
			s.upgrades(Policy{Strategy: strategyEnvVars}, idle)
			changes(s)
		}},
	})
}

func TestStrategyRewritesNothingAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	rewrites := func(s *harness) {
		s.restart("a", func(o world.Object) world.Object { return withEnv(o, variable("STAKATER_APP_CONFIGMAP", "0a")) })
	}
	for name, happens := range map[string]func(s *harness){
		"another one": func(s *harness) { s.upgrades(Policy{Strategy: strategyAnnotations}, rewrites) },
		"none": func(s *harness) {
			s.upgrades(Policy{}, idle)
			rewrites(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, Options{Strategy: strategyEnvVars})
			s.begin()
			happens(s)
			assert.Contains(t, s.signatures(), "kept/strategy-rewritten")
		})
	}
}
