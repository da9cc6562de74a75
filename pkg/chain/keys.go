package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// keysAgain is when the keys are read again where a digest was found after the last read had begun.
	keysAgain = time.Second
	// keysAfterFailure is when they are read again after a failure.
	keysAfterFailure = 10 * time.Second
	// reportKeys is how many reads in a row must fail until the digests that wait are reported.
	reportKeys = 3
)

// keyReads are the reads of the digest keys before a published digest is replaced whose key the ring in memory does not have: the ring may
// be old, and what follows the digest restarts with it.
type keyReads struct {
	refresh func(ctx context.Context) (began time.Time, err error)
	// unknown are the objects that have such a digest, and are to be written.
	unknown map[referent.Key]unknownKey
	// read is when the last read began that has succeeded.
	read time.Time
	// reading: a read is under way, or must not begin yet.
	reading bool
	// failures is how many reads in a row have failed, and failure why the last one has; empty where it has not.
	failures int
	failure  string
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
	return !k.waits(met)
}

// waits reports whether a digest waits for the keys: they were not read since it was met.
func (k *keyReads) waits(met unknownKey) bool { return k.read.Before(met.since) }

// mayReplace reports whether the digest of an object may be replaced. If that is not known, it has the keys read, and the object is due again
// with them.
func (u *publisher) mayReplace(key referent.Key) bool {
	id := u.graphState.graph.PublishedUnder(key)
	if id == "" {
		delete(u.keys.unknown, key)
		return true
	}
	_, arrived := u.graphState.ring().Key(id)
	switch {
	case arrived:
		u.due(key) // the graph is about to be made again with it
		return false
	case u.keys.isLost(key, id, u.now()):
		return true
	default:
		u.readKeys()
		return false
	}
}

// readKeys reads the keys, one read after the other.
func (u *publisher) readKeys() {
	if u.keys.reading {
		return
	}
	u.keys.reading = true
	u.lifetime.run(func(ctx context.Context) {
		began, err := u.keys.refresh(ctx)
		if ctx.Err() != nil { // it has ended with the configuration: what waits under the next one has the keys read at once
			u.inbox.gather(func(p *pending) { p.keysReadable = true })
			return
		}
		u.inbox.arrive(func(p *pending) { p.keysRead = &keysRead{began, err} })
	})
}

// takeKeys takes in that the keys were read, or are others, and when they may be read again.
func (u *publisher) takeKeys(p pending) {
	if p.keysReadable {
		u.keys.reading = false
		for _, met := range u.keys.unknown {
			if u.keys.waits(met) {
				u.readKeys()
				break
			}
		}
	}
	if p.rekeyed {
		u.dueWithKeys()
	}
	if p.keysRead == nil {
		return
	}
	wait := keysAgain
	if err := p.keysRead.err; err != nil {
		wait = keysAfterFailure
		u.keysUnread(err)
	} else {
		u.keys.read, u.keys.failures, u.keys.failure = p.keysRead.began, 0, ""
		u.dueWithKeys()
	}
	u.inbox.gatherAfter(wait, func(p *pending) { p.keysReadable = true })
}

// dueWithKeys marks the objects that wait for the keys.
func (u *publisher) dueWithKeys() {
	for key := range u.keys.unknown {
		u.due(key)
	}
}

// errKeysUnread is why a digest under an unknown key is not replaced.
var errKeysUnread = errors.New("the digest is under a key that is not known, and the Secret of the digest keys cannot be read")

// keysUnread takes in that the keys cannot be read. The digests that wait for them are not published, which is reported where it lasts.
func (u *publisher) keysUnread(err error) {
	u.keys.failures++
	if failure := err.Error(); failure != u.keys.failure {
		u.keys.failure = failure
		u.log.Info("cannot read the digest keys; digests under an unknown key are not replaced until then", "error", failure)
	}
	for _, key := range slices.SortedFunc(maps.Keys(u.keys.unknown), referent.Key.Compare) {
		switch {
		case !u.publishes(key.Namespace):
			delete(u.keys.unknown, key)
			u.due(key) // when the namespace comes back into scope
		case u.keys.waits(u.keys.unknown[key]):
			u.waitForKeys(key, err)
		}
	}
}

// waitForKeys takes in that the digest of an object waits for the keys, and reports the object where that lasts. It has no object to report
// where a watch that has taken the place of another one has not listed it yet.
func (u *publisher) waitForKeys(key referent.Key, err error) {
	resource, ok := u.graphState.schema.Resource(key.GroupResource())
	object := u.sources.identified(key)
	mayReport := ok && object != nil && u.keys.failures >= reportKeys
	if u.unpublished.waitsForKeys(key, mayReport, u.now()) {
		u.report(written{publication{key: key, resource: resource, object: object}, fmt.Errorf("%w: %w", errKeysUnread, err)})
	}
}
