package configstate

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// parallel bounds the reads of one call that are under way or wait, so that a call with many Refs leaves the queue of its
// namespace to others, too.
const parallel = 32

// Live returns the state that the API server has now, with Entries, in at most two requests for an object: its metadata,
// and the object itself where the digest cache does not know that version. An object of which the digest cache knows
// nothing, or an older version than the watch has seen, is read at once. The metadata of many objects is read in one
// request, see worthListing. An object that does not exist is Absent. Callers at the same time share requests, but only
// those that began after they asked.
//
// The error joins a ReadError for each Ref that failed; the states of the others are returned nevertheless.
func (s *Store) Live(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	return s.liveBy(ctx, s.live, namespace, refs)
}

func (s *Store) liveBy(
	ctx context.Context, by *lanes, namespace string, refs []reference.Ref,
) (map[reference.Ref]digest.State, error) {
	lists := s.listLive(ctx, by, namespace, refs)
	return s.each(ctx, namespace, refs, func(ctx context.Context, k objectKey) (digest.State, error) {
		if k.ref.Kind == reference.SecretProviderClass {
			return s.readClass(ctx, by, k)
		}
		read := s.readLive
		if versions, ok := lists[k.ref.Kind]; ok {
			if state, ok := s.atVersion(k, versions); ok {
				return state, nil
			}
			read = s.readContent // its metadata is known
		}
		return by.objects.Do(ctx, k, func(ctx context.Context) (digest.State, error) { return read(ctx, k) })
	})
}

// Admission reads for the webhook.
type Admission struct{ store *Store }

// Admission returns a reader whose reads do not wait for those of the Store's own methods, nor these for them.
func (s *Store) Admission() Admission { return Admission{s} }

// Live is Store.Live.
func (a Admission) Live(
	ctx context.Context, namespace string, refs []reference.Ref,
) (map[reference.Ref]digest.State, error) {
	return a.store.liveBy(ctx, a.store.admitted, namespace, refs)
}

// Current returns what Observe does, always with Entries: objects whose Entries are not at hand are read. It is as
// current as the watch, or more: the API server may answer out of its own cache, which spares its storage a read for each
// change. However many ask at the same time, one version of an object is read once. Errors are as with Live.
func (s *Store) Current(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	known := s.Observe(namespace, refs)
	return s.each(ctx, namespace, refs, func(ctx context.Context, k objectKey) (digest.State, error) {
		if state, ok := known[k.ref]; ok && complete(state) {
			return state, nil
		}
		if k.ref.Kind == reference.SecretProviderClass {
			return s.readClass(ctx, s.fills, k)
		}
		return s.fills.objects.Do(ctx, k, func(ctx context.Context) (digest.State, error) {
			// Another call may have read it while this one was waiting.
			if state, ok := s.Observe(k.namespace, []reference.Ref{k.ref})[k.ref]; ok && complete(state) {
				return state, nil
			}
			return s.readSeen(ctx, k)
		})
	})
}

// At returns the state that an object had at a resourceVersion of the API server's storage, with Entries. It fails where the API server
// does not keep that version any more, which is after some minutes.
func (s *Store) At(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error) {
	ring := s.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	if ref.Kind.Custom() {
		return digest.State{}, fmt.Errorf("old versions of %s are not kept", ref)
	}
	ctx, cancel := context.WithTimeout(watchhealth.Unwatched(ctx), readLimit)
	defer cancel()
	k := objectKey{namespace, ref}
	release, err := s.fills.objects.Admit(ctx, k)
	if err != nil {
		return digest.State{}, &ReadError{Namespace: namespace, Ref: ref, Err: err}
	}
	defer release()
	at := s.client.contentAt
	if ref.Kind == reference.SecretProviderClass {
		at = s.classAt
	}
	state, found, err := at(ctx, k, ring, version)
	switch {
	case err != nil:
		return digest.State{}, &ReadError{Namespace: namespace, Ref: ref, Err: err}
	case !found:
		return digest.State{Absent: true}, nil
	}
	return state, nil
}

func complete(state digest.State) bool {
	return state.Absent || len(state.Entries) > 0
}

// each reads all refs in parallel and sorts out states and errors.
func (s *Store) each(
	ctx context.Context, namespace string, refs []reference.Ref, read func(context.Context, objectKey) (digest.State, error),
) (map[reference.Ref]digest.State, error) {
	var mu sync.Mutex
	states := make(map[reference.Ref]digest.State, len(refs))
	var failed []*ReadError
	one := func(ref reference.Ref) {
		state, err := read(ctx, objectKey{namespace, ref})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, &ReadError{Namespace: namespace, Ref: ref, Err: err})
			return
		}
		states[ref] = state
	}
	if len(refs) == 1 {
		one(refs[0])
		return states, join(failed)
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, ref := range refs {
		group.Go(func() error {
			one(ref)
			return nil
		})
	}
	_ = group.Wait() // every error is in failed
	return states, join(failed)
}

// readLive reads the state of an object with as few requests as possible.
func (s *Store) readLive(ctx context.Context, k objectKey) (digest.State, error) {
	ring := s.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	keys := ring.Keys()
	known, ok := s.digests.get(k, keys)
	if !ok || s.outdated(k, known) {
		return s.readContent(ctx, k)
	}
	meta, found, err := s.client.meta(ctx, k)
	if err != nil {
		return digest.State{}, err
	}
	if !found {
		s.absent(k)
		return digest.State{Absent: true}, nil
	}
	// Look again: another call may have read the object during this request.
	if state, ok := s.digests.at(k, meta.UID, meta.ResourceVersion, keys); ok {
		return state, nil
	}
	return s.readContent(ctx, k)
}

// readSeen reads the object itself, as it was when the watch saw it last or later.
func (s *Store) readSeen(ctx context.Context, k objectKey) (digest.State, error) {
	s.mu.RLock()
	seen := s.objects[scopeKey{k.ref.Kind, k.namespace}][k.ref.Name].resourceVersion
	s.mu.RUnlock()
	state, err := s.readContentAt(ctx, k, seen)
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		// Another API server than the one we watch, whose own cache is behind; or its storage was restored from a backup.
		return s.readContent(ctx, k)
	}
	return state, err
}

// absent forgets an object that a read has not found, unless nothing but that would report its end to the others who have read it.
func (s *Store) absent(k objectKey) {
	s.mu.RLock()
	w := s.watcherOf(k)
	watched := w == nil || s.status[w].synced
	s.mu.RUnlock()
	if watched {
		s.digests.drop(k)
	}
}

// outdated reports whether the metadata cache has another version of an object than the digest cache.
func (s *Store) outdated(k objectKey, known digest.State) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[scopeKey{k.ref.Kind, k.namespace}][k.ref.Name]
	return ok && (o.uid != known.UID || o.resourceVersion != known.ResourceVersion)
}

// readContent reads the object itself, as it is now.
func (s *Store) readContent(ctx context.Context, k objectKey) (digest.State, error) {
	return s.readContentAt(ctx, k, "")
}

// readContentAt reads the object itself: as it is now, or not older than a resourceVersion.
func (s *Store) readContentAt(ctx context.Context, k objectKey, atLeast string) (digest.State, error) {
	ring := s.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	state, found, err := s.client.content(ctx, k, ring, atLeast)
	if err != nil {
		return digest.State{}, err
	}
	if !found {
		s.absent(k)
		return digest.State{Absent: true}, nil
	}
	s.digests.put(k, state)
	return state, nil
}
