package history

import (
	"reflect"
	"slices"
	"time"
)

// Shrink returns a shorter and simpler history that still fails: without steps that do not matter, with shorter and
// rounder waits, and with a plainer installation. It calls fails at most budget times, never for h itself, which is taken
// to fail. The same function gives the same result.
func Shrink(h History, fails func(History) bool, budget int) History {
	s := &shrinking{best: h, fails: fails, budget: budget}
	for {
		before := s.found
		s.dropTrace()
		s.dropSteps()
		s.simplifyWaits()
		s.simplifySetup()
		if s.found == before || s.budget <= 0 {
			return s.best
		}
	}
}

type shrinking struct {
	best   History
	fails  func(History) bool
	budget int
	// found counts the improvements.
	found int
}

// try keeps a candidate that still fails.
func (s *shrinking) try(candidate History) bool {
	if s.budget <= 0 {
		return false
	}
	s.budget--
	if !s.fails(candidate) {
		return false
	}
	s.best = candidate
	s.found++
	return true
}

// dropTrace goes first: decisions of the scheduler bind later attempts.
func (s *shrinking) dropTrace() {
	if len(s.best.Trace) > 0 {
		candidate := s.best
		candidate.Trace = nil
		s.try(candidate)
	}
}

// dropSteps removes chunks of steps, large ones first, then single steps.
func (s *shrinking) dropSteps() {
	for size := max(len(s.best.Steps)/2, 1); ; size = max(size/2, 1) {
		removed := false
		// From the end: what comes after the failure goes at once.
		for end := len(s.best.Steps); end > 0 && s.budget > 0; end -= size {
			removed = s.dropRange(max(end-size, 0), end) || removed
		}
		if size == 1 && !removed || s.budget <= 0 || len(s.best.Steps) == 0 {
			return
		}
	}
}

// dropRange removes some steps: with their time first, so that the run gets shorter, else such that the later steps
// happen when they did.
func (s *shrinking) dropRange(from, to int) bool {
	candidate := s.best
	candidate.Steps = slices.Delete(slices.Clone(s.best.Steps), from, to)
	if s.try(candidate) {
		return true
	}
	removed := Duration(0)
	for _, step := range s.best.Steps[from:to] {
		removed += step.Wait
	}
	if removed == 0 || from == len(candidate.Steps) {
		return false
	}
	candidate.Steps = slices.Clone(candidate.Steps)
	candidate.Steps[from].Wait += removed
	return s.try(candidate)
}

// rounds are the units to which waits are rounded.
var rounds = []time.Duration{10 * time.Second, time.Second, 100 * time.Millisecond, 10 * time.Millisecond}

func (s *shrinking) simplifyWaits() {
	for i := range s.best.Steps {
		for _, wait := range simplerWaits(time.Duration(s.best.Steps[i].Wait)) {
			candidate := s.best
			candidate.Steps = slices.Clone(s.best.Steps)
			candidate.Steps[i].Wait = Duration(wait)
			if s.try(candidate) {
				break
			}
		}
	}
}

// simplerWaits returns what to try instead of a wait, the simplest first; each is shorter.
func simplerWaits(wait time.Duration) []time.Duration {
	if wait == 0 {
		return nil
	}
	simpler := []time.Duration{0}
	for _, unit := range rounds {
		if wait > unit {
			simpler = append(simpler, unit)
		}
	}
	for _, unit := range rounds {
		if rounded := wait.Truncate(unit); rounded > 0 && rounded < wait {
			simpler = append(simpler, rounded)
		}
	}
	slices.Sort(simpler)
	return slices.Compact(simpler)
}

// simplifySetup removes flags and tries fewer replicas and default values.
func (s *shrinking) simplifySetup() {
	s.change(func(setup *Setup) { setup.Flags = nil })
	for i := len(s.best.Setup.Flags) - 1; i >= 0; i-- {
		s.change(func(setup *Setup) { setup.Flags = slices.Delete(slices.Clone(setup.Flags), i, i+1) })
	}
	for replicas := 1; replicas < s.best.Setup.Replicas; replicas++ {
		s.change(func(setup *Setup) { setup.Replicas = min(setup.Replicas, replicas) })
	}
	s.simplifySecond()
	s.change(func(setup *Setup) { setup.OtherWebhooks = "" })
	s.change(func(setup *Setup) { setup.FailurePolicy = "" })
	s.change(func(setup *Setup) { setup.NoStreamingLists = false })
	s.change(func(setup *Setup) { setup.TrackFields = false })
	s.change(func(setup *Setup) { setup.Graph = false })
	s.change(func(setup *Setup) { setup.Latency = 0 })
	s.change(func(setup *Setup) { setup.Slack = 0 })
	s.change(func(setup *Setup) { setup.CrashAtWrite = 0 })
}

// simplifySecond tries to do without the second installation, or with a plainer one.
func (s *shrinking) simplifySecond() {
	s.change(func(setup *Setup) { setup.Second = nil })
	for _, edit := range []func(*Second){
		func(second *Second) { second.Replicas = 1 }, func(second *Second) { second.Before = false }, func(second *Second) { second.Scope = "" },
	} {
		s.change(func(setup *Setup) {
			if setup.Second != nil {
				plainer := *setup.Second
				edit(&plainer)
				setup.Second = &plainer
			}
		})
	}
}

// change tries another installation, if it is another.
func (s *shrinking) change(edit func(*Setup)) {
	candidate := s.best
	edit(&candidate.Setup)
	if !candidate.Setup.equal(s.best.Setup) {
		s.try(candidate)
	}
}

func (s Setup) equal(o Setup) bool {
	same := slices.Equal(s.Flags, o.Flags)
	s.Flags, o.Flags = nil, nil
	return same && reflect.DeepEqual(s, o)
}
