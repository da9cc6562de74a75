package chain

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/backoff"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// paceBurst is how many digests of an object are written in a row without a pause. Each further one waits for paceFirst, then
	// twice as long as the one before, up to paceLongest.
	paceBurst              = 10
	paceFirst, paceLongest = 10 * time.Second, time.Minute
	// paceWindow is how long an object without a write is remembered, at least.
	paceWindow = 5 * time.Minute
)

// pace slows down the writes of digests that change again and again. Two installations can follow each other's digests in a circle, which
// neither of them sees as a whole: each write causes the next one, and each of them may restart workloads.
type pace struct {
	// current has the objects that were written since it was begun, previous those of the window before.
	current, previous map[referent.Key]writes
	begun             time.Time
}

// writes are those of an object that follow each other.
type writes struct {
	count int
	last  time.Time
	// waiting: the next write has been put off, and comes by itself.
	waiting bool
}

// pause is how long the next write waits.
func (w writes) pause() time.Duration {
	if w.count < paceBurst {
		return 0
	}
	return backoff.Doubled(paceFirst, paceLongest, w.count-paceBurst)
}

func (p *pace) writes(key referent.Key) writes {
	if w, ok := p.current[key]; ok {
		return w
	}
	return p.previous[key]
}

// wrote counts a write. It is true for the first one after which there is a pause.
func (p *pace) wrote(key referent.Key, now time.Time) (slow bool) {
	w := p.writes(key)
	if now.Sub(w.last) > max(paceFirst, 2*w.pause()) {
		w = writes{}
	}
	p.set(key, writes{count: w.count + 1, last: now}, now)
	return w.count+1 == paceBurst
}

// wait returns how long a write has to wait, and whether the caller has to come back then: only the first one has.
func (p *pace) wait(key referent.Key, now time.Time) (wait time.Duration, back bool) {
	w := p.writes(key)
	if wait = w.last.Add(w.pause()).Sub(now); w.pause() == 0 || wait <= 0 {
		return 0, false
	}
	if back = !w.waiting; back {
		w.waiting = true
		p.set(key, w, now)
	}
	return wait, back
}

// ready ends the wait of an object.
func (p *pace) ready(key referent.Key, now time.Time) {
	if w := p.writes(key); w.waiting {
		w.waiting = false
		p.set(key, w, now)
	}
}

func (p *pace) set(key referent.Key, w writes, now time.Time) {
	if p.current == nil || now.Sub(p.begun) > paceWindow {
		p.previous, p.current, p.begun = p.current, map[referent.Key]writes{}, now
	}
	p.current[key] = w
}
