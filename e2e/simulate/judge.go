package simulate

import (
	"errors"
	"fmt"
	"sync"
	"time"

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
	rules.Program, rules.Foreign, rules.Second = isProgram, withoutForeign, s.isSecond
	return &judge{note: s.note, on: s.journal.on, acts: map[string]int{}, oracle: oracle.New(rules)}
}

// ask has the oracle to itself.
func (j *judge) ask(do func(o *oracle.Oracle)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	do(j.oracle)
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

// Refused takes in what a controller wanted to store and the API server refused as invalid.
func (j *judge) Refused(key world.Key, object world.Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note("%s is refused as invalid", key)
	j.oracle.Refused(time.Now(), key, object)
}

// owes reports whether the program still has something to do.
func (j *judge) owes() (owes bool) {
	j.ask(func(o *oracle.Oracle) { owes = o.Owes(time.Now()) })
	return owes
}

// looping reports whether the program was found in a hot loop.
func (j *judge) looping() (looping bool) {
	j.ask(func(o *oracle.Oracle) { looping = o.Looping() })
	return looping
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
	switch {
	case c.Restored > 0:
		by = "the restore"
	case c.Call != nil:
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
