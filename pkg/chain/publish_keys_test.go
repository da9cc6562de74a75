package chain_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
)

// keySecret is the Secret with the digest keys, which the ring of a world is behind.
type keySecret struct {
	world *world

	mu     sync.Mutex
	stored digest.Ring
	err    error
	// early is by how much a read seems to have begun earlier, as where it is the last one.
	early time.Duration
	reads []time.Time
	// hanging has reads hang until they are given up.
	hanging bool
}

func (k *keySecret) read(ctx context.Context) (time.Time, error) {
	k.mu.Lock()
	k.reads = append(k.reads, time.Now())
	stored, err, early, hanging := k.stored, k.err, k.early, k.hanging
	k.mu.Unlock()
	if hanging {
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	}
	if err == nil && !stored.Equal(k.world.currentRing()) {
		k.world.rotate(stored)
	}
	return time.Now().Add(-early), err
}

func (k *keySecret) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *keySecret) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.reads)
}

// rotatedUnseen is a world with a digest that the predecessor has published under a key, and what is written in its place.
func rotatedUnseen(t *testing.T, under string) (w *world, keys *keySecret, written func() []string) {
	t.Helper()
	keys = &keySecret{stored: digesttest.Ring(t, "1")}
	w = newWorldWith(t, chain.Options{RefreshKeys: keys.read})
	keys.world = w
	w.rotate(digesttest.Ring(t, under))
	var mu sync.Mutex
	var values []string
	w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := &unstructured.Unstructured{}
		assert.NoError(t, object.UnmarshalJSON(action.(clienttesting.PatchAction).GetPatch()))
		mu.Lock()
		values = append(values, object.GetAnnotations()["example.org/checksum"])
		mu.Unlock()
		return true, object, nil
	})
	w.graph()
	leads, stop := context.WithCancel(t.Context())
	keys.set(func() { keys.stored = digesttest.Ring(t, under) })
	go func() { assert.NoError(t, w.Lead(leads)) }()
	w.pass(5 * time.Second)
	stop()
	w.pass(time.Second)
	require.Len(t, values, 1, "the predecessor has published")
	w.put(proxies, "p", map[string]any{"service": "s"}, map[string]string{"example.org/checksum": values[0]})
	w.rotate(digesttest.Ring(t, "1"))
	w.pass(5 * time.Second)
	mu.Lock()
	values = nil
	mu.Unlock()
	keys.set(func() { keys.reads = nil })
	return w, keys, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(values)
	}
}

// What follows a digest restarts with each other one, although no content has changed.
func TestNewLeaderWithAnOldRingKeepsWhatItsPredecessorHasPublished(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"the keys are read": false, "the API server is away at first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, keys, written := rotatedUnseen(t, "12")
				keys.set(func() {
					if away {
						keys.err = errors.New("away")
					}
				})
				go func() { assert.NoError(t, w.Lead(t.Context())) }()
				w.pass(5 * time.Second)
				keys.set(func() { keys.err = nil })
				w.pass(time.Minute)
				require.Empty(t, written(), "the digest is replaced, and what follows it restarts")
				assert.LessOrEqual(t, keys.count(), 3, "and a read is not repeated all the time")
				w.set(tls, "2")
				w.pass(5 * time.Second)
				newest, _ := digesttest.Ring(t, "2").Newest()
				require.Len(t, written(), 1, "a change is published")
				assert.Contains(t, written()[0], "v1:"+string(newest.ID), "under the newest key")
			})
		})
	}
}

// A leader has an old ring for as long as its watch of the Secret hangs.
func TestDigestUnderAnUnknownKeyIsKeptUntilTheKeysAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, keys, written := rotatedUnseen(t, "12")
		keys.set(func() { keys.stored = digesttest.Ring(t, "1") })
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(time.Millisecond)
		keys.set(func() { keys.stored, keys.reads = digesttest.Ring(t, "12"), nil })
		w.pass(time.Minute)
		assert.Empty(t, written())
		assert.Equal(t, 1, keys.count())
	})
}

func TestDigestUnderALostKeyIsReplaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		early time.Duration
		// after is when it is replaced at the latest, once the keys can be read.
		after time.Duration
		most  int
	}{
		"at once":                   {after: time.Second, most: 2},
		"the last read was earlier": {early: time.Hour, after: 2 * time.Second, most: 10},
		"once the keys can be read": {err: errors.New("away"), after: 11 * time.Second, most: 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, keys, written := rotatedUnseen(t, "2")
				keys.set(func() { keys.stored, keys.err, keys.early = digesttest.Ring(t, "1"), tc.err, tc.early })
				go func() { assert.NoError(t, w.Lead(t.Context())) }()
				if tc.err != nil || tc.early > 0 {
					w.pass(5 * time.Second)
					require.Empty(t, written(), "the key may be in the Secret")
					keys.set(func() { keys.err, keys.early = nil, 0 })
				}
				w.pass(tc.after)
				require.Len(t, written(), 1)
				newest, _ := digesttest.Ring(t, "1").Newest()
				assert.Contains(t, written()[0], "v1:"+string(newest.ID))
				w.pass(time.Minute)
				assert.LessOrEqual(t, keys.count(), tc.most, "a read is not repeated all the time")
			})
		})
	}
}
