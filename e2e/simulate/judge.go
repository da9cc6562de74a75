package simulate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// judge hands what happens to the oracle, one thing at a time, and to the journal.
type judge struct {
	mu     sync.Mutex
	oracle *oracle.Oracle
	own    []oracle.Violation
	note   func(format string, args ...any)
	on     bool
	acts   map[string]int
}

func newJudge(s *simulation, rules oracle.Options) *judge {
	rules.Program, rules.Foreign = isProgram, withoutForeign
	return &judge{note: s.note, on: s.journal.on, acts: map[string]int{}, oracle: oracle.New(rules)}
}

// Request takes in a request that has come.
func (j *judge) Request(call *world.Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Request(call)
}

// Commit takes in a change that is stored.
func (j *judge) Commit(c world.Commit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.on {
		j.note("%s", describe(c))
	}
	j.oracle.Commit(c)
}

// Reply takes in an answer.
func (j *judge) Reply(r world.Reply) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.on && (r.Call.Write() || r.Status >= 400) && r.Call.Key.Resource != world.Leases {
		text := ""
		if r.Failure != nil {
			text = r.Failure.Message
		}
		j.note("    %s → %d %s %v", nameOf(r.Call), r.Status, text, r.Warnings)
	}
	j.oracle.Reply(r)
}

// Fault takes in that a fault begins or ends.
func (j *judge) Fault(f oracle.Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.on {
		j.note("fault %s %s begin=%t", f.Kind, f.Scope, f.Begin)
	}
	j.oracle.Fault(f)
}

// Timing takes in with which gates a process starts.
func (j *judge) Timing(name string, g gates) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Timing(name, g.settle, g.settleMax, g.refractory)
}

// Jitter takes in how long any request may be under way.
func (j *judge) Jitter(most time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Jitter(most)
}

// Refused takes in what a controller wanted to store and the API server refused as invalid.
func (j *judge) Refused(key world.Key, object world.Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note("%s is refused as invalid", key)
	j.oracle.Refused(time.Now(), key, object)
}

// Rescope takes in which workloads the flags select from now on.
func (j *judge) Rescope(scope oracle.Scope) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Rescope(time.Now(), scope)
}

// Repolicy takes in what the flags say about restarts from now on.
func (j *judge) Repolicy(policy oracle.Policy) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Repolicy(time.Now(), policy)
}

// Metrics takes in what a replica counts.
func (j *judge) Metrics(client string, families map[string]*dto.MetricFamily, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Metrics(client, families, at)
}

// Log takes in a line that a replica logs.
func (j *judge) Log(client, line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Log(client, line, time.Now())
}

// Quiet has the oracle judge a world at rest.
func (j *judge) Quiet(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Quiet(now)
}

// Owes asks the oracle whether the program still has something to do.
func (j *judge) Owes() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.oracle.Owes(time.Now())
}

// looping asks the oracle whether the program was found in a hot loop.
func (j *judge) looping() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.oracle.Looping()
}

// Idle has the oracle judge a time in which nothing happened.
func (j *judge) Idle(from, to time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.oracle.Idle(from, to)
}

func (j *judge) acted(step history.Step, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.acts["done"]++
	case errors.Is(err, act.ErrSkipped):
		j.acts["skipped"]++
	default:
		j.acts["failed"]++
		j.note("    %s failed: %v", step.Do, err)
	}
}

func (j *judge) report(v oracle.Violation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.own = append(j.own, v)
}

func (j *judge) violations() []oracle.Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append(j.own, j.oracle.Violations()...)
}

func (j *judge) counts() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	counts := j.oracle.Describe()
	for name, n := range j.acts {
		counts["acts "+name] = n
	}
	return counts
}

// describe puts a stored change into words.
func describe(c world.Commit) string {
	by := "the cluster"
	if c.Call != nil {
		by = c.Call.Client
	}
	switch {
	case c.Old == nil:
		return fmt.Sprintf("%d %s created by %s", c.Version, c.Key, by)
	case c.New == nil:
		return fmt.Sprintf("%d %s deleted by %s", c.Version, c.Key, by)
	default:
		return fmt.Sprintf("%d %s changed by %s: %s", c.Version, c.Key, by, difference(c.Old, c.New))
	}
}
