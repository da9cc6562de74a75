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

// outcomes are how the lookups of a kind have ended. They are safe for concurrent use.
type outcomes struct {
	mu sync.Mutex
	// last is how the last one has ended, and err its error; count is how many in a row have ended in that way, all how many there were.
	last       outcome
	err        error
	count, all int
}

// add counts a lookup.
func (a *outcomes) add(o outcome, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o != a.last {
		a.last, a.count = o, 0
	}
	a.err = err
	a.count++
	a.all++
}

// number returns how many there were.
func (a *outcomes) number() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// show reports whether the last ones after a number of them have all ended in one way.
func (a *outcomes) show(o outcome, after int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last == o && min(a.count, a.all-after) >= inARow
}

// failure returns the error of the last one after a number of them.
func (a *outcomes) failure(after int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == after {
		return nil
	}
	return a.err
}
