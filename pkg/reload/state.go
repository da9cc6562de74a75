package reload

import (
	"sync"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// state is what the loop keeps of workloads while it runs. Nothing in it decides whether a reload is due; losing it costs at
// most a repeated Event or an unsettled reload. Each part is safe for concurrent use.
type state struct {
	changes   changes
	due       dueReloads
	deferrals deferrals
	writes    ownWrites
	takeovers takeovers
	warnings  warnings
	reports   reports
	contests  contests
	runs      runs
}

// Forget drops all that is kept of a workload.
func (s *state) Forget(key workload.Key) {
	for _, part := range []interface{ Forget(workload.Key) }{
		&s.changes, &s.due, &s.deferrals, &s.writes, &s.takeovers, &s.warnings, &s.reports, &s.contests, &s.runs,
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
	e, ok := p.entries[key]
	if !ok {
		if p.entries == nil {
			p.entries = map[workload.Key]*Entry{}
		}
		e = new(Entry)
		p.entries[key] = e
	}
	f(e)
}

// find calls f with the entry of a workload, under the lock, if there is one.
func (p *perWorkload[Entry]) find(key workload.Key, f func(*Entry)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.entries[key]; ok {
		f(e)
	}
}

// Forget drops the entry of a workload.
func (p *perWorkload[Entry]) Forget(key workload.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.entries, key)
}
