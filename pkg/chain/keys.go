package chain

import (
	"context"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// keysAgain is when the keys are read again where a digest was found after the last read had begun.
	keysAgain = time.Second
	// keysAfterFailure is when they are read again after a failure.
	keysAfterFailure = 10 * time.Second
)

// keyReads are the reads of the digest keys before a published digest is replaced whose key the ring in memory does not have: the ring may
// be old, and what follows the digest restarts with it.
type keyReads struct {
	refresh func(ctx context.Context) (began time.Time, err error)
	// unknown are the objects that have such a digest, and are to be written.
	unknown map[referent.Key]unknownKey
	// read is when the last read began that has succeeded.
	read time.Time
	// waits: a read is under way, or must not begin yet.
	waits bool
	// failure is why the last read has failed; empty where it has not.
	failure string
}

// unknownKey is the id of a key that the ring does not have, and since when that is known.
type unknownKey struct {
	id    digest.KeyID
	since time.Time
}

// keysRead is the end of a read of the keys.
type keysRead struct {
	began time.Time
	err   error
}

// isLost reports whether a key is not in the Secret: a read that began after it was met has not found it.
func (k *keyReads) isLost(key referent.Key, id digest.KeyID, now time.Time) bool {
	met, known := k.unknown[key]
	if !known || met.id != id {
		k.unknown[key] = unknownKey{id: id, since: now}
		return false
	}
	return !k.read.Before(met.since)
}

// mayReplace reports whether the digest of an object may be replaced. If that is not known, it has the keys read; the object stays due.
func (u *publisher) mayReplace(key referent.Key) bool {
	id := u.graphState.graph.PublishedUnder(key)
	if id == "" {
		delete(u.keys.unknown, key)
		return true
	}
	_, arrived := u.graphState.ring().Key(id)
	if !arrived && u.keys.isLost(key, id, u.now()) {
		return true
	}
	u.due(key)
	if !arrived { // otherwise the graph is about to be made again with it
		u.readKeys()
	}
	return false
}

// readKeys reads the keys, one read after the other.
func (u *publisher) readKeys() {
	if u.keys.waits {
		return
	}
	u.keys.waits = true
	u.lifetime.run(func(ctx context.Context) {
		began, err := u.keys.refresh(ctx)
		u.inbox.arrive(func(p *pending) { p.keysRead = &keysRead{began, err} })
	})
}

// takeKeys takes in that the keys were read, and when they may be read again.
func (u *publisher) takeKeys(p pending) {
	if p.keysReadable {
		u.keys.waits = false
	}
	if p.keysRead == nil {
		return
	}
	wait, failure := keysAfterFailure, ""
	if err := p.keysRead.err; err != nil {
		failure = err.Error()
	} else {
		u.keys.read, wait = p.keysRead.began, keysAgain
	}
	if failure != "" && failure != u.keys.failure {
		u.log.Info("cannot read the digest keys; digests under an unknown key are not replaced until then", "error", failure)
	}
	u.keys.failure = failure
	u.inbox.gatherAfter(wait, func(p *pending) { p.keysReadable = true })
}
