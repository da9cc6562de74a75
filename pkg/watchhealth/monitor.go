package watchhealth

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Reason says how a watch fails. The values are labels of a metric.
type Reason string

// The reasons.
const (
	// Refused is an answer of 401 or 403.
	Refused Reason = "refused"
	// Failed is any other error in place of an answer.
	Failed Reason = "failed"
	// NoAnswer means that the API server took the request and did not answer in time.
	NoAnswer Reason = "no-answer"
	// Silent means that a watch was opened and then delivered nothing, not even a bookmark.
	Silent Reason = "silent"
	// Incomplete means that a list was cut off, or that it could not be used.
	Incomplete Reason = "incomplete"
)

// Status is the state of one watch.
type Status struct {
	Watch

	// Since is when the watch began to fail; zero if it works.
	Since  time.Time
	Reason Reason
	// Detail is a sentence fragment that explains the Reason.
	Detail string
}

// Healthy reports whether the watch works.
func (s Status) Healthy() bool { return s.Since.IsZero() }

// Failure is counted.
type Failure struct {
	Resource string
	Reason   Reason
}

// forget is how long after the last request a watch is no longer reported: its client has given it up. Reflectors retry
// within about a minute.
const forget = 5 * time.Minute

// state is what is known of one watch.
type state struct {
	Status

	// busy counts the requests that are under way, used is when the last one began or ended.
	busy int
	used time.Time
	// listed is set between a list that was read to its end, or a page of one, and the request that follows it; lister is its client.
	listed bool
	lister any
	// silence is the Detail of a watch that was Silent and has delivered nothing since, whatever else has failed; empty otherwise.
	silence string
	// short counts the watches in a row that have ended at once without a byte.
	short int
	// expired counts the watches since one has worked that were answered with 410, whatever was listed in between.
	expired int
	// lookup is set while the resource cannot be looked up, or is found in vain, whatever the API server answers to lists.
	lookup bool
}

// works takes back all failures.
func (s *state) works() {
	s.Status, s.silence, s.lookup, s.expired = Status{Watch: s.Watch}, "", false, 0
}

// delivers takes back all failures, and that watches ended at once.
func (s *state) delivers() {
	s.works()
	s.short = 0
}

// Monitor keeps the state of all lists and watches that go through its transport. The zero value is ready to use. It is safe
// for concurrent use.
type Monitor struct {
	mu      sync.Mutex
	watches map[Watch]*state
	counts  map[Failure]uint64
}

// Statuses returns all watches, sorted.
func (m *Monitor) Statuses() []Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.watches, func(_ Watch, s *state) bool { return s.busy == 0 && time.Since(s.used) > forget })
	all := make([]Status, 0, len(m.watches))
	for _, s := range m.watches {
		all = append(all, s.Status)
	}
	slices.SortFunc(all, func(a, b Status) int { return a.compare(b.Watch) })
	return all
}

// Failing reports whether the watch that covers a namespace fails: its own, or that of all namespaces.
func (m *Monitor) Failing(resource, namespace string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, watch := range []Watch{{resource, namespace}, {resource, ""}} {
		if s := m.watches[watch]; s != nil && !s.Healthy() {
			return true
		}
	}
	return false
}

// AnyFailing reports whether any watch fails.
func (m *Monitor) AnyFailing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.watches {
		if !s.Healthy() {
			return true
		}
	}
	return false
}

// Failures returns how often each resource failed for each reason.
func (m *Monitor) Failures() map[Failure]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts)
}

// with calls f with the state of a watch, under the lock.
func (m *Monitor) with(about Watch, f func(*state)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.watches[about]
	if !ok {
		if m.watches == nil {
			m.watches = map[Watch]*state{}
			m.counts = map[Failure]uint64{}
		}
		s = &state{Status: Status{Watch: about}}
		m.watches[about] = s
	}
	s.used = time.Now()
	f(s)
}

// follows reports whether a request belongs to a watch. A list that nothing follows is not reported when it fails: the
// caller has the error.
func (m *Monitor) follows(q request) bool {
	if q.watch || q.fromCache {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.watches[q.about] != nil
}

// begin records a request.
func (m *Monitor) begin(q request) {
	m.with(q.about, func(s *state) {
		s.busy++
		if q.streaming {
			return
		}
		if s.listed && s.lister == q.client && !q.watch && !q.page {
			m.fail(s, Incomplete, "its lists are answered, but invalid", s.used)
		}
		s.listed = false
	})
}

// expired records that a version has expired. That of a page may. That of a watch was just listed: it does not expire several times in a
// row.
func (m *Monitor) expired(q request, since time.Time) {
	if !q.watch {
		return
	}
	m.with(q.about, func(s *state) {
		if s.expired++; s.expired >= shortInARow {
			m.fail(s, Failed, "the API server answers each watch with 410 Gone, also right after a list", since)
		}
	})
}

// end records that a request is over.
func (m *Monitor) end(q request) {
	m.with(q.about, func(s *state) { s.busy-- })
}

// failed records a failure that began at some time.
func (m *Monitor) failed(q request, reason Reason, detail string, since time.Time) {
	m.with(q.about, func(s *state) { m.fail(s, reason, detail, since) })
}

func (m *Monitor) fail(s *state, reason Reason, detail string, since time.Time) {
	if s.Healthy() {
		s.Since = since
	}
	s.Reason, s.Detail = reason, detail
	if reason == Silent {
		s.silence = detail
	}
	m.counts[Failure{s.Resource, reason}]++
}

// opened records a watch that the API server has accepted. One that was silent before has to say something first.
func (m *Monitor) opened(q request) {
	m.with(q.about, func(s *state) {
		if s.silence == "" {
			s.works()
			return
		}
		s.Reason, s.Detail = Silent, s.silence
	})
}

// delivered records the first bytes of a watch.
func (m *Monitor) delivered(q request) { m.with(q.about, (*state).delivers) }

// listedBy records the end of a streaming list. It proves nothing about the watch behind it, where those before have ended at once.
func (m *Monitor) listedBy(q request) {
	m.with(q.about, func(s *state) {
		if s.short < shortInARow {
			s.works()
		}
	})
}

// shortInARow is how many watches that end at once, or that are answered with 410, one after another, are a failure. An update of a
// definition ends the watches of its resource, and there may be two updates.
const shortInARow = 3

// lasted records a watch that was open for a while, though it sent nothing: those that follow are counted anew.
func (m *Monitor) lasted(q request) {
	m.with(q.about, func(s *state) {
		if s.short < shortInARow {
			s.short = 0
		}
	})
}

// accepted records a watch that has ended at once, and sent nothing. The API server may have stopped; after the third one in a row, whatever
// has come between, the watch fails until it delivers.
func (m *Monitor) accepted(q request, since time.Time) {
	m.with(q.about, func(s *state) {
		if s.short++; s.short >= shortInARow {
			m.fail(s, Silent, "its watches are accepted, but end at once", since)
		}
	})
}

// listed records a complete list, or a page of one.
func (m *Monitor) listed(q request) {
	m.with(q.about, func(s *state) { s.listed, s.lister = true, q.client })
}

// ErrContradicted is for Discovered. One API server of several may not have the definition, or a proxy may not pass the requests on.
var ErrContradicted = errors.New("the API server lists it in its discovery, and answers its lists or watches with 404 Not Found")

// Discovered records how the lookup of a resource ended, before which no list or watch is sent. That a custom resource is not installed
// is no failure.
func (m *Monitor) Discovered(about Watch, err error) {
	if err == nil || meta.IsNoMatchError(err) && !about.builtIn() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s := m.watches[about]; s != nil {
			s.works()
		}
		return
	}
	reason, detail := Failed, "the resource cannot be looked up: "+err.Error()
	if errors.Is(err, ErrContradicted) {
		detail = err.Error()
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		reason = Refused
	}
	m.with(about, func(s *state) {
		s.lookup = true
		m.fail(s, reason, detail, s.used)
	})
}

// unserved records that the API server does not have the resource. There is nothing to see, unless a lookup has failed: the kind may be
// served otherwise.
func (m *Monitor) unserved(q request) {
	m.with(q.about, func(s *state) {
		if !s.lookup {
			s.works()
		}
	})
}
