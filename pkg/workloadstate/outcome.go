package workloadstate

import "sync"

// outcome is how a lookup of a kind has ended whose resource the API server has answered with 404.
type outcome int

const (
	// unknown is a lookup that has failed, or found another resource.
	unknown outcome = iota
	// uninstalled is one that has found the kind in no version.
	uninstalled
	// contradicted is one that has found the same resource again.
	contradicted
)

// inARow is how many lookups that end in the same way count: an answer of one API server among several can be out of date.
const inARow = 2

// streak counts the lookups in a row that have ended in the same way, since a request for the resource was accepted. It is safe for
// concurrent use.
type streak struct {
	mu    sync.Mutex
	last  outcome
	count int
}

// add counts a lookup.
func (s *streak) add(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o != s.last {
		s.last, s.count = o, 0
	}
	s.count++
}

// end is called when a request is accepted.
func (s *streak) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.count = unknown, 0
}

// shows reports whether the last lookups have all ended in one way.
func (s *streak) shows(o outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last == o && s.count >= inARow
}
