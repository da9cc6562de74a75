package configstate

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// parallel bounds the reads of one call that are under way or wait, so that a call with many Refs leaves the queue of its
// namespace to others, too.
const parallel = 32

// reader answers with the contents of config objects, out of the caches or from the API server. It has no state of its own.
type reader struct {
	client   *client
	ring     func() digest.Ring
	watches  watches
	progress *syncProgress
	digests  *digests
	metadata *metadataCache
	statuses *podStatusCache
	queues   queues
}

// observe is Store.Cached.
func (r *reader) observe(namespace string, refs []reference.Ref) map[reference.Ref]digest.State {
	ring := r.ring()
	states := make(map[reference.Ref]digest.State, len(refs))
	r.metadata.observe(states, namespace, refs, ring.Keys())
	r.statuses.observe(states, namespace, refs, ring, r.client.sha1(reference.SecretProviderClass))
	return states
}

// readAllLive is Store.ReadLive, in one of the lanes.
func (r *reader) readAllLive(
	ctx context.Context, by *lanes, namespace string, refs []reference.Ref,
) (map[reference.Ref]digest.State, error) {
	lists := r.listLive(ctx, by, namespace, refs)
	return each(ctx, namespace, refs, func(ctx context.Context, k objectKey) (digest.State, error) {
		if k.ref.Kind == reference.SecretProviderClass {
			return r.readClass(ctx, by, k)
		}
		read := r.readLive
		if versions, ok := lists[k.ref.Kind]; ok {
			if state, ok := r.atVersion(k, versions); ok {
				return state, nil
			}
			read = r.readContent // its metadata is known
		}
		return by.objects.Do(ctx, k, func(ctx context.Context) (digest.State, error) { return read(ctx, by.client, k) })
	})
}

// current is Store.ReadIfChanged.
func (r *reader) current(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error) {
	known := r.observe(namespace, refs)
	return each(ctx, namespace, refs, func(ctx context.Context, k objectKey) (digest.State, error) {
		if state, ok := known[k.ref]; ok && complete(state) {
			return state, nil
		}
		if k.ref.Kind == reference.SecretProviderClass {
			return r.readClass(ctx, r.queues.fills, k)
		}
		return r.queues.fills.objects.Do(ctx, k, func(ctx context.Context) (digest.State, error) {
			// Another call may have read it while this one was waiting.
			if state, ok := r.observe(k.namespace, []reference.Ref{k.ref})[k.ref]; ok && complete(state) {
				return state, nil
			}
			return r.readSeen(ctx, r.queues.fills.client, k)
		})
	})
}

// at is Store.At.
func (r *reader) at(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error) {
	ring := r.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	if ref.Kind.Custom() {
		return digest.State{}, fmt.Errorf("old versions of %s are not kept", ref)
	}
	ctx, cancel := context.WithTimeout(watchhealth.Unwatched(ctx), readLimit)
	defer cancel()
	k := objectKey{namespace, ref}
	release, err := r.queues.fills.objects.Admit(ctx, k)
	if err != nil {
		return digest.State{}, &ReadError{Namespace: namespace, Ref: ref, Err: err}
	}
	defer release()
	at := r.client.contentAt
	if ref.Kind == reference.SecretProviderClass {
		at = r.classAt
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
func each(
	ctx context.Context, namespace string, refs []reference.Ref, read func(context.Context, objectKey) (digest.State, error),
) (map[reference.Ref]digest.State, error) {
	var mu sync.Mutex
	states := make(map[reference.Ref]digest.State, len(refs))
	var failed []*ReadError
	one := func(ref reference.Ref) {
		var state digest.State
		err := recovering.Func(func() (err error) {
			state, err = read(ctx, objectKey{namespace, ref})
			return err
		})()
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
func (r *reader) readLive(ctx context.Context, c *client, k objectKey) (digest.State, error) {
	ring := r.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	keys := ring.Keys()
	known, ok := r.digests.get(k, keys)
	if !ok || r.metadata.outdates(k, known) {
		return r.readContent(ctx, c, k)
	}
	meta, found, err := c.meta(ctx, k, wire.Keep{})
	if err != nil {
		return digest.State{}, err
	}
	if !found {
		r.absent(k)
		return digest.State{Absent: true}, nil
	}
	// Look again: another call may have read the object during this request.
	if state, ok := r.digests.at(k, meta.UID, meta.ResourceVersion, keys); ok {
		return state, nil
	}
	return r.readContent(ctx, c, k)
}

// readSeen reads the object itself, as it was when the watch saw it last or later.
func (r *reader) readSeen(ctx context.Context, c *client, k objectKey) (digest.State, error) {
	seen, _ := r.metadata.get(k)
	state, err := r.readContentAt(ctx, c, k, seen.resourceVersion)
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		// Another API server than the one we watch, whose own cache is behind; or its storage was restored from a backup.
		return r.readContent(ctx, c, k)
	}
	return state, err
}

// absent forgets an object that a read has not found, unless nothing but that would report its end to the others who have read it.
func (r *reader) absent(k objectKey) {
	if w := r.watches.of(k.ref.Kind, k.namespace); w == nil || r.progress.listed(w) {
		r.digests.drop(k)
	}
}

// readContent reads the object itself, as it is now.
func (r *reader) readContent(ctx context.Context, c *client, k objectKey) (digest.State, error) {
	return r.readContentAt(ctx, c, k, "")
}

// readContentAt reads the object itself: as it is now, or not older than a resourceVersion.
func (r *reader) readContentAt(ctx context.Context, c *client, k objectKey, atLeast string) (digest.State, error) {
	ring := r.ring()
	if ring.Empty() {
		return digest.State{}, digest.ErrNoKey
	}
	state, found, err := c.content(ctx, k, ring, atLeast)
	if err != nil {
		return digest.State{}, err
	}
	if !found {
		r.absent(k)
		return digest.State{Absent: true}, nil
	}
	r.digests.put(k, state)
	return state, nil
}
