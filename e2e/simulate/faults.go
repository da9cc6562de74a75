package simulate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// faultKind is one kind of fault.
type faultKind struct {
	name string
	// kind is the oracle's word for it.
	kind   string
	weight int
	// weightGraph is added in histories with custom resources.
	weightGraph int
	words       string
	draw        func(r *rand.Rand) history.Step
	// begin returns what ends the fault; nil if it is over at once, or did not take place.
	begin func(s *simulation, step history.Step) func()
	// instant means that the fault is over at once. Every other fault without an end did not take place.
	instant bool
	// scoped means that Step.On says what is concerned; else it is the whole program.
	scoped bool
}

func (k faultKind) scope(step history.Step) string {
	if k.scoped {
		return step.On
	}
	return ""
}

func findFault(name string) (faultKind, bool) {
	for _, k := range faultKinds() {
		if k.name == name {
			return k, true
		}
	}
	return faultKind{}, false
}

// faultKinds are all faults that a history can have.
func faultKinds() []faultKind {
	return slices.Concat(
		processFaults(), requestFaults(), lossFaults(), permissionsFaults(), watchFaults(), listFaults(), restoreFaults(), admissionFaults(),
		stripperFaults(), installationFaults(), definitionFaults())
}

const defaultFor = 5 * time.Second

// duration is how long a fault lasts.
func duration(step history.Step) time.Duration {
	d, err := time.ParseDuration(step.With["for"])
	if err != nil {
		return defaultFor
	}
	return d
}

func number(step history.Step, key string, otherwise int) int {
	n, err := strconv.Atoi(step.With[key])
	if err != nil {
		return otherwise
	}
	return n
}

// lasting draws a step that lasts: mostly seconds, sometimes longer than leases and back-offs.
func lasting(r *rand.Rand, on string, with ...string) history.Step {
	step := history.Step{On: on, With: map[string]string{
		"for": pick(r, "300ms", "2s", "5s", "12s", "20s", "45s", "2m"),
	}}
	for i := 0; i+1 < len(with); i += 2 {
		step.With[with[i]] = with[i+1]
	}
	return step
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func anyReplica(r *rand.Rand) string { return pick(r, "replica-0", "replica-1", "replica-2") }

// processFaults are about the replicas' processes.
func processFaults() []faultKind {
	onReplica := func(with ...string) func(r *rand.Rand) history.Step {
		return func(r *rand.Rand) history.Step { return lasting(r, anyReplica(r), with...) }
	}
	return []faultKind{
		{
			name: "kill", kind: "killed", weight: 6, scoped: true, words: "SIGKILL to %[1]s, which starts again after %[2]s", draw: onReplica(),
			begin: func(s *simulation, step history.Step) func() { return s.leave(step, s.kill) },
		},
		{
			name: "stop", kind: "stopped", weight: 6, scoped: true, words: "SIGTERM to %[1]s, which starts again after %[2]s", draw: onReplica(),
			begin: func(s *simulation, step history.Step) func() { return s.leave(step, s.terminate) },
		},
		{
			name: "stop-short", kind: "killed", weight: 2, scoped: true,
			words: "SIGTERM to %[1]s, and SIGKILL %[3]s later if it has not ended; it starts again after %[2]s",
			draw: func(r *rand.Rand) history.Step {
				return lasting(r, anyReplica(r), "grace", pick(r, "50ms", "300ms", "1s", "3s", "9s"))
			},
			begin: stopShort,
		},
		{name: "freeze", kind: "frozen", weight: 4, scoped: true, words: "SIGSTOP to %[1]s for %[2]s", draw: onReplica(), begin: freeze},
		{
			name: "restart-with", kind: "stopped", weight: 2, scoped: true, words: "%[1]s is started again with other flags (%[3]s)",
			draw: func(r *rand.Rand) history.Step {
				return history.Step{On: anyReplica(r), With: map[string]string{"for": "1s", "flags": pick(r, flagSets()...)}}
			},
			begin: func(s *simulation, step history.Step) func() {
				if at := s.slot(step.On); at != nil {
					at.flags = append(selection(s.flagsOf(at)), splitFlags(step.With["flags"])...)
				}
				return s.leave(step, s.terminate)
			},
		},
		{
			name: "clock", kind: "clock", weight: 2, scoped: true, words: "the clock of %[1]s is off by %[3]s for %[2]s",
			draw: func(r *rand.Rand) history.Step {
				return lasting(r, anyReplica(r), "offset", pick(r, "-1m", "-3s", "3s", "40s", "10m"))
			},
			begin: func(s *simulation, step history.Step) func() {
				at := s.slot(step.On)
				offset, err := time.ParseDuration(step.With["offset"])
				if at == nil || err != nil {
					return nil
				}
				at.offset.Store(int64(offset))
				return func() { at.offset.Store(0) }
			},
		},
	}
}

// flagSets are flags that a replica may be started with in the course of a history, after those of the installation.
func flagSets() []string {
	return []string{"", "--settle=0s --refractory=0s", "--settle=3s --settle-max=8s", "--refractory=20s", "--workers=1"}
}

// leave ends the process of a slot and starts another when the fault is over.
func (s *simulation) leave(step history.Step, end func(*replica)) func() {
	at := s.slot(step.On)
	if at == nil || at.current == nil || at.current.leaving {
		return nil
	}
	at.wanted = false
	end(at.current)
	return func() {
		at.wanted = true
		s.restart(at)
	}
}

// stopShort ends a replica that takes longer to end than it is given, as a kubelet does.
func stopShort(s *simulation, step history.Step) func() {
	grace, err := time.ParseDuration(step.With["grace"])
	if err != nil {
		return nil
	}
	return s.leave(step, func(r *replica) {
		s.terminate(r)
		s.after(grace, func() {
			if r.slot.current == r {
				s.kill(r)
			}
		})
	})
}

// freeze stops what a replica does with the world. Its own timers go on, so that it learns of a lease that it has lost when
// it is back, as a process does that was stopped.
func freeze(s *simulation, step history.Step) func() {
	at := s.slot(step.On)
	if at == nil || at.current == nil {
		return nil
	}
	r := at.current
	r.frozen.Store(true)
	for _, w := range s.gate.Waiting() {
		if w.call.Client == r.name && w.call.Write() {
			s.gate.MakeLate(w)
		}
	}
	for _, w := range s.api.Watches() {
		if w.Client == r.name {
			w.Hold()
		}
	}
	return func() {
		r.frozen.Store(false)
		for _, w := range s.api.Watches() {
			if w.Client == r.name {
				w.Release()
			}
		}
	}
}

// requestFaults are about requests to the API server.
func requestFaults() []faultKind {
	return []faultKind{
		{
			name: "api-away", kind: "api-away", weight: 3, words: "the API server is away from %[1]s for %[2]s",
			draw:  func(r *rand.Rand) history.Step { return lasting(r, everyOrOne(r)) },
			begin: away,
		},
		{
			name: "api-slow", kind: "slow", weight: 4, words: "the API server takes up to %[3]s for requests of %[1]s for %[2]s",
			draw: func(r *rand.Rand) history.Step {
				return lasting(r, everyOrOne(r), "by", pick(r, "20ms", "500ms", "4s", "15s"))
			},
			begin: ruled(func(step history.Step) *rule {
				by, _ := time.ParseDuration(step.With["by"])
				return &rule{client: step.On, percent: 70, delay: by}
			}),
		},
		{
			name: "api-errors", kind: "api-errors", weight: 6, words: "the API server answers requests of %[1]s with errors (%[3]s) for %[2]s",
			draw: func(r *rand.Rand) history.Step {
				return lasting(r, everyOrOne(r), "code", pick(r, "401", "403", "409", "410", "429", "500", "503", "504"),
					"percent", pick(r, "10", "50", "100"), "resource", pick(r, "", "configmaps", "secrets", "deployments", "leases", "events"))
			},
			begin: ruled(func(step history.Step) *rule {
				code := number(step, "code", 500)
				return &rule{
					client: step.On, percent: number(step, "percent", 50), resource: step.With["resource"],
					fate: func(*simulation, *world.Call) apiserver.Fate { return apiserver.Fate{Refuse: refusal(code)} },
				}
			}),
		},
	}
}

// lossFaults are those by which requests and answers do not arrive, or in part; and replicas that are behind.
func lossFaults() []faultKind {
	return []faultKind{
		{
			name: "lose-answers", kind: "api-errors", weight: 4, words: "answers to writes of %[1]s, deletions included, are lost (%[3]s %%) for %[2]s",
			draw: func(r *rand.Rand) history.Step { return lasting(r, everyOrOne(r), "percent", pick(r, "20", "60")) },
			begin: ruled(func(step history.Step) *rule {
				return &rule{
					client: step.On, percent: number(step, "percent", 20), verbs: []string{"create", "update", "patch", "delete"},
					fate: func(*simulation, *world.Call) apiserver.Fate { return apiserver.Fate{Lose: true} },
				}
			}),
		},
		{
			name: "drop-requests", kind: "api-errors", weight: 3, words: "requests of %[1]s are lost (%[3]s %%) for %[2]s",
			draw: func(r *rand.Rand) history.Step { return lasting(r, everyOrOne(r), "percent", pick(r, "20", "60")) },
			begin: ruled(func(step history.Step) *rule {
				return &rule{
					client: step.On, percent: number(step, "percent", 20),
					fate: func(*simulation, *world.Call) apiserver.Fate { return apiserver.Fate{Drop: true} },
				}
			}),
		},
		{
			name: "cut-lists", kind: "api-errors", weight: 3, words: "answers to %[1]s are cut short for %[2]s",
			draw: func(r *rand.Rand) history.Step { return lasting(r, everyOrOne(r)) },
			begin: ruled(func(step history.Step) *rule {
				return &rule{
					client: step.On, percent: 50, verbs: []string{"get", "list"},
					fate: func(s *simulation, _ *world.Call) apiserver.Fate {
						return apiserver.Fate{CutAfter: 1 + s.random.IntN(400)}
					},
				}
			}),
		},
		{
			name: "hang-writes", kind: "writes-hang", weight: 3, scoped: true,
			words: "the program's writes of %[1]s within %[2]s never have an answer",
			draw: func(r *rand.Rand) history.Step {
				return lasting(r, pick(r, "deployments", "statefulsets", "daemonsets"))
			},
			begin: ruled(func(step history.Step) *rule {
				return &rule{
					percent: 100, resource: step.On, verbs: []string{"update", "patch"},
					fate: func(*simulation, *world.Call) apiserver.Fate { return apiserver.Fate{Hang: true} },
				}
			}),
		},
		{
			name: "lag", kind: "watch-held", weight: 3, words: "%[1]s starts again and reads from an API server that is behind",
			draw: func(r *rand.Rand) history.Step {
				return lasting(r, anyReplica(r), "by", strconv.Itoa(1+r.IntN(30)))
			},
			begin: lag,
		},
	}
}

// ruled makes a fault of a rule for requests, which holds until the fault ends.
func ruled(ruleOf func(step history.Step) *rule) func(s *simulation, step history.Step) func() {
	return func(s *simulation, step history.Step) func() {
		r := ruleOf(step)
		s.faults.rules = append(s.faults.rules, r)
		return func() { s.faults.remove(r) }
	}
}

// everyOrOne draws a replica, or none for all.
func everyOrOne(r *rand.Rand) string { return pick(r, "", "", "replica-0", "replica-1") }

// away cuts the network between the API server and the program.
func away(s *simulation, step history.Step) func() {
	r := &rule{client: step.On, cut: true, percent: 100, fate: func(*simulation, *world.Call) apiserver.Fate { return apiserver.Fate{Drop: true} }}
	s.faults.rules = append([]*rule{r}, s.faults.rules...)
	for _, w := range s.api.Watches() {
		if isProgram(w.Client) && (step.On == "" || slotOf(w.Client) == step.On) {
			w.Break()
		}
	}
	return func() { s.faults.remove(r) }
}

// lag restarts a replica that then sees an older state, and nothing newer until the fault ends: a fault pattern of Sieve, a view
// that goes back in time.
func lag(s *simulation, step history.Step) func() {
	behind := int64(number(step, "by", 5))
	r := &rule{
		client: step.On, percent: 100, verbs: []string{"get", "list", "watch"},
		fate: func(*simulation, *world.Call) apiserver.Fate { return apiserver.Fate{Lag: behind, Held: true} },
	}
	s.faults.rules = append(s.faults.rules, r)
	back := s.leave(history.Step{On: step.On}, s.kill)
	if back != nil {
		s.after(restartDelay, back)
	}
	return func() {
		s.faults.remove(r)
		for _, w := range s.api.Watches() {
			if slotOf(w.Client) == step.On {
				w.Break()
			}
		}
	}
}
