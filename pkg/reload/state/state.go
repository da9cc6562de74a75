package state

import (
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// State is what the loop keeps of workloads while it runs. Nothing in it decides whether a reload is due; losing it costs at
// most a repeated Event, an unsettled reload, or the second run of a CronJob that changed while it was reloaded. A new leader
// lists the Secrets of the recreations.
// Each part is safe for concurrent use.
type State struct {
	Changes       changes
	Due           dueReloads
	Deferrals     deferrals
	Refusals      refusals
	Writes        ownWrites
	Takeovers     takeovers
	Warnings      warnings
	Reports       reports
	Contests      contests
	Runs          runs
	ReferentWaits unreadWaits
	Notices       notices
	Resumes       resumes
	// UnansweredEnds are those of pauses.
	UnansweredEnds unansweredEnds
	Creations      Creations
	Versions       Versions
	Compared       compared
	Records        Records
	// Recreations outlive the workload.
	Recreations Recreations
}

// Forget drops all that is kept of a workload but its recreations, and which Events it has.
func (s *State) Forget(key workload.Key) {
	s.Changes.Forget(key)
	s.forgetOthers(key)
}

// ForgetUnlessPending is Forget for a workload that is left alone. It reports false, and forgets nothing, where a config event is pending.
func (s *State) ForgetUnlessPending(key workload.Key) bool {
	if !s.Changes.forgetUnlessPending(key) {
		return false
	}
	s.forgetOthers(key)
	return true
}

func (s *State) forgetOthers(key workload.Key) {
	for _, part := range []interface{ Forget(workload.Key) }{
		&s.Due, &s.Deferrals, &s.Refusals, &s.Writes, &s.Takeovers, &s.Warnings, &s.Reports, &s.Contests, &s.Runs, &s.ReferentWaits, &s.Notices,
		&s.Resumes, &s.UnansweredEnds, &s.Creations, &s.Versions, &s.Compared, &s.Records,
	} {
		part.Forget(key)
	}
}

// perWorkload has an entry for each workload that needs one, which most of a cluster's do not. It is safe for concurrent use.
type perWorkload[Entry any] struct {
	mu      sync.Mutex
	entries map[workload.Key]*Entry
}

// with calls f with the entry of a workload, under the lock.
func (p *perWorkload[Entry]) with(key workload.Key, f func(*Entry)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.entryLocked(key))
}

// entryLocked returns the entry of a workload, which is new if there is none.
func (p *perWorkload[Entry]) entryLocked(key workload.Key) *Entry {
	e, ok := p.entries[key]
	if !ok {
		if p.entries == nil {
			p.entries = map[workload.Key]*Entry{}
		}
		e = new(Entry)
		p.entries[key] = e
	}
	return e
}

// find calls f with the entry of a workload, under the lock, if there is one.
func (p *perWorkload[Entry]) find(key workload.Key, f func(*Entry)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.entries[key]; ok {
		f(e)
	}
}

// get returns a copy of the entry of a workload; zero if there is none. A map in it may be read under the lock only.
func (p *perWorkload[Entry]) get(key workload.Key) (entry Entry) {
	p.find(key, func(e *Entry) { entry = *e })
	return entry
}

// drop drops the entry of a workload, under the lock, if there is one and f allows it.
func (p *perWorkload[Entry]) drop(key workload.Key, f func(*Entry) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.entries[key]; ok && f(e) {
		delete(p.entries, key)
	}
}

// Forget drops the entry of a workload.
func (p *perWorkload[Entry]) Forget(key workload.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.entries, key)
}
