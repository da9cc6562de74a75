package cluster

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The kinds of work.
const (
	reconcile = iota
	start
	collect
)

// piece is a piece of work.
type piece struct {
	verb int
	key  world.Key
}

func (p piece) name() string {
	switch p.verb {
	case start:
		return "start " + p.key.String()
	case collect:
		return "collect " + p.key.String()
	}
	return p.key.String()
}

// queue has what is pending now, and what is due later. A piece is pending at most once.
type queue struct {
	pieces map[string]piece
	names  []string // sorted
	later  map[string]waiting
}

type waiting struct {
	piece piece
	at    time.Time
}

func newQueue() queue {
	return queue{pieces: map[string]piece{}, later: map[string]waiting{}}
}

func (q *queue) add(p piece) {
	name := p.name()
	if _, ok := q.pieces[name]; ok {
		return
	}
	q.pieces[name] = p
	i, _ := slices.BinarySearch(q.names, name)
	q.names = slices.Insert(q.names, i, name)
}

func (q *queue) has(p piece) bool {
	_, ok := q.pieces[p.name()]
	return ok
}

func (q *queue) drop(p piece) {
	name := p.name()
	delete(q.later, name)
	q.dropPending(name)
}

func (q *queue) dropPending(name string) {
	delete(q.pieces, name)
	if i, ok := slices.BinarySearch(q.names, name); ok {
		q.names = slices.Delete(q.names, i, i+1)
	}
}

// wake keeps the earliest time for a piece.
func (q *queue) wake(p piece, at time.Time) {
	name := p.name()
	if w, ok := q.later[name]; ok && w.at.Before(at) {
		return
	}
	q.later[name] = waiting{p, at}
}

func (q *queue) due(now time.Time) []string {
	for _, w := range q.later {
		if !w.at.After(now) {
			q.add(w.piece)
		}
	}
	return slices.Clone(q.names)
}

func (q *queue) take(name string, now time.Time) (piece, bool) {
	p, ok := q.pieces[name]
	if w, late := q.later[name]; !ok && late && !w.at.After(now) {
		p, ok = w.piece, true
	}
	if ok {
		if w, late := q.later[name]; late && !w.at.After(now) {
			delete(q.later, name)
		}
		q.dropPending(name)
	}
	return p, ok
}

func (q *queue) next() (time.Time, bool) {
	var first time.Time
	for _, w := range q.later {
		if first.IsZero() || w.at.Before(first) {
			first = w.at
		}
	}
	return first, !first.IsZero()
}
