package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/oracle"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Options say how a history is run.
type Options struct {
	// Verbose keeps a journal: what happened, the program's log included.
	Verbose bool
	// BeforeStep is called before each step, and with the number of steps when all is quiet at the end; nil does nothing. The
	// error is that of the act of the step before.
	BeforeStep func(step int, acted error, api Reader)
	// StartBlocked starts pods although an object that they require is missing, as KWOK does.
	StartBlocked bool
}

// Reader reads what is stored at the end of a run.
type Reader interface {
	List(resource world.Resource, namespace string) []world.Object
}

// Result is what a run has shown.
type Result struct {
	Violations []oracle.Violation
	// Trace has the decisions of the scheduler.
	Trace []string
	// Strayed counts the decisions of a replay that are not those of the trace.
	Strayed int
	// Requests were made to the API server, Reviews to the webhook; Hits of them met a fault.
	Requests, Reviews, Hits int
	// Writes counts those of the program, leases left out.
	Writes int
	// Tried counts the acts and faults that took place, Skipped the acts that had nothing to act on.
	Tried map[string]int
	// Lasted is how much fake time went by.
	Lasted time.Duration
	// Judged counts what the oracle looked at, and what the patterns of Sieve came to (sieve.go).
	Judged  map[string]int
	Journal []string
}

// Catalogue has all acts and faults.
func Catalogue() history.Catalogue { return slices.Clone(catalogue()) }

var catalogue = sync.OnceValue(func() history.Catalogue { return append(act.Catalogue(), faultEntries()...) })

const (
	// stepLimit is how long a step of a user may take.
	stepLimit = 3 * time.Minute
	// calm is how long a history without faults is given to come to rest; recovery, one with faults: longer than the longest
	// back-off of the program, and than the oracle's bounds.
	calm, recovery = 2 * time.Minute, 12 * time.Minute
	// brief is the least time for a history with faults, long the most: longer than the oracle's bounds for most faults, and
	// for all of them.
	brief, long = 80 * time.Second, 7*time.Minute + 30*time.Second
	// thoroughOf is how many histories with faults there are for each that is given all of the time, and then watched for idle.
	thoroughOf = 8
	// idle is how long the program is watched when nothing happens any more.
	idle = 2 * time.Minute
)

// Run runs a history in a bubble of fake time and judges it. Prepare must have been called.
func Run(t *testing.T, h history.History, o Options) Result {
	t.Helper()
	var result Result
	panics := reconcilePanics()
	left := inBubble(t, func(t *testing.T) { //nolint:thelper // it is the test
		s, err := newSimulation(h, o)
		if err != nil {
			t.Fatalf("begin the simulation: %v", err)
		}
		if err := s.play(o); err != nil && !errors.Is(err, errHotLoop) {
			s.violate("alive", "", err.Error())
		}
		s.close()
		result = s.result()
	})
	for _, stack := range left {
		result.Violations = append(result.Violations, oracle.Violation{Law: "alive", Signature: "alive/leak", Text: "a goroutine is left over: " + stack})
	}
	if n := reconcilePanics() - panics; n > 0 {
		result.Violations = append(result.Violations, oracle.Violation{
			Law: "alive", Signature: "alive/panic", Text: fmt.Sprintf("%v reconciliations panicked", n),
		})
	}
	return result
}

// play goes through the history.
func (s *simulation) play(o Options) error {
	if err := s.open(); err != nil {
		return err
	}
	at := time.Now()
	acted := make([]error, len(s.history.Steps)+1)
	for i, step := range s.history.Steps {
		at = at.Add(time.Duration(step.Wait))
		s.run(at, nil)
		if s.broken != nil {
			return s.broken
		}
		s.show(o, i, acted)
		s.take(step, func(err error) { acted[i+1] = err })
	}
	s.run(time.Now().Add(stepLimit), func() bool { return s.acting.Load() == 0 })
	s.run(s.faulty, nil)
	s.heal()
	s.recover()
	if s.broken != nil {
		return s.broken
	}
	s.show(o, len(s.history.Steps), acted)
	s.judgeAtRest()
	return s.broken
}

// patience is how long all is given to come to rest.
func (s *simulation) patience() time.Duration {
	if s.history.Setup.CrashAtWrite > 0 {
		return recovery
	}
	for _, step := range s.history.Steps {
		if _, fault := findFault(step.Do); fault {
			return recovery
		}
	}
	return calm
}

// thorough reports whether the program is given all of the time to come to rest, and judged by what it does when idle. Fake time
// is not free: leases are renewed, watches are opened again. So most histories with faults end when nothing is owed any more.
func (s *simulation) thorough() bool {
	return s.patience() == calm || s.history.Setup.CrashAtWrite > 0 || s.history.Seed%thoroughOf == 0
}

// recover gives the program time to come to rest after the last fault.
func (s *simulation) recover() {
	if s.thorough() {
		s.run(time.Now().Add(s.patience()), nil)
		return
	}
	end := time.Now().Add(long)
	s.run(time.Now().Add(brief), nil)
	for s.broken == nil && time.Now().Before(end) && s.oracle.owes() {
		s.run(time.Now().Add(10*time.Second), nil)
	}
}

// judgeAtRest has the oracle look at the end, and at a time in which nothing happens.
func (s *simulation) judgeAtRest() {
	s.resting = true
	s.scrape()
	s.oracle.ask(func(o *oracle.Oracle) { o.Quiet(time.Now()) })
	if s.pick(false) == nil || s.history.Setup.Second != nil && s.pick(true) == nil {
		s.violate("alive", "", fmt.Sprintf("no replica is ready long after the last fault; ended by themselves: %v", s.endings))
	}
	if !s.thorough() {
		return
	}
	from := time.Now()
	s.run(from.Add(idle), nil)
	s.oracle.ask(func(o *oracle.Oracle) { o.Idle(from, time.Now()) })
}

// open starts the API server, the replicas, and what users have from the beginning.
func (s *simulation) open() error {
	if err := s.serveAPI(); err != nil {
		return err
	}
	namespace := world.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": installation}}
	if _, err := s.api.Store(world.Key{Resource: world.Namespaces, Name: installation}, namespace); err != nil {
		return fmt.Errorf("create the namespace of the installation: %w", err)
	}
	if s.history.Setup.Graph {
		key, configuration := act.GraphConfiguration()
		if _, err := s.api.Store(key, configuration); err != nil {
			return fmt.Errorf("create the configuration: %w", err)
		}
	}
	for i := range s.history.Setup.All() {
		at := &slot{name: replicaName(i), second: s.isSecond(replicaName(i))}
		at.flags = s.flagsOf(at)
		s.slots = append(s.slots, at)
		if err := s.start(at); err != nil {
			return err
		}
	}
	s.run(time.Now().Add(time.Minute), func() bool { return len(s.endpoints(false))+len(s.endpoints(true)) == len(s.slots) })
	if err := s.perform(func(ctx context.Context) error { return act.Setup(ctx, s.user) }); err != nil {
		return fmt.Errorf("create the workloads: %w", err)
	}
	if s.history.Setup.Graph {
		if err := s.perform(func(ctx context.Context) error { return act.SetupGraph(ctx, s.user) }); err != nil {
			return fmt.Errorf("create the custom resources: %w", err)
		}
	}
	s.run(time.Now().Add(10*time.Second), nil)
	s.opened = time.Now()
	s.faults.jitter = s.jitter()
	s.oracle.ask(func(o *oracle.Oracle) { o.Jitter(s.faults.jitter) })
	return nil
}

// jitter is how long a request may be under way where the history has faults: without faults none takes any time.
func (s *simulation) jitter() time.Duration {
	if s.patience() == calm {
		return 0
	}
	return []time.Duration{0, 5 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second}[s.random.IntN(4)]
}

// perform has a user do something, and waits for it.
func (s *simulation) perform(do func(context.Context) error) error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	s.acting.Add(1)
	go func() {
		defer s.acting.Add(-1)
		done <- do(ctx)
	}()
	s.run(time.Now().Add(stepLimit), func() bool { return s.acting.Load() == 0 })
	select {
	case err := <-done:
		return err
	default:
		return context.DeadlineExceeded
	}
}

// take begins one step. The result of an act is reported to ended, on another goroutine.
func (s *simulation) take(step history.Step, ended func(error)) {
	if e, ok := catalogue().Find(step.Do); ok && s.journal.on {
		s.note("%s", e.Words(step))
	}
	if _, fault := findFault(step.Do); fault {
		s.begin(step)
		return
	}
	s.acting.Add(1)
	s.acts.Go(func() {
		defer s.acting.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
		defer cancel()
		err := act.Do(ctx, s.user, step)
		s.oracle.acted(step, err)
		ended(err)
	})
	s.tried[step.Do]++
}

// close ends everything, so that no goroutine is left.
func (s *simulation) close() {
	s.closing = true
	s.heal()
	for _, at := range s.slots {
		at.wanted = false
		if at.current != nil {
			at.current.stop()
		}
	}
	ended := func() bool {
		for _, at := range s.slots {
			if at.current != nil {
				return false
			}
		}
		return len(s.zombies) == 0 && s.acting.Load() == 0
	}
	s.broken = nil
	s.run(time.Now().Add(5*time.Minute), ended)
	s.gate.Close()
	s.api.Stop()
	s.userOffline()
	for _, host := range []string{apiHost, userHost} {
		s.net.Down(host)
	}
	for _, r := range s.replicas {
		s.net.Down(r.name)
		r.offline()
		r.client.CloseIdleConnections()
		r.probe.CloseIdleConnections()
	}
	_ = s.http.Close()
}

func (s *simulation) result() Result {
	judged := s.oracle.counts()
	judged[readsBehind], judged[statesFolded], judged[killedAtWrite] = s.api.Behind(), s.api.Folded(), s.crashed
	return Result{
		Violations: s.oracle.violations(), Trace: s.trace.made, Strayed: s.trace.strayed,
		Requests: s.requests, Reviews: int(s.calls.Load()), Hits: s.hits, Writes: s.writes, Tried: maps.Clone(s.tried),
		Lasted: time.Since(s.began), Judged: judged, Journal: s.journal.lines,
	}
}
