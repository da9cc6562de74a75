package keyring_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/keyring"
	"github.com/pod-reloader/pod-reloader/pkg/logtest"
)

const (
	wait = time.Minute
	tick = 10 * time.Millisecond
)

// endless is a source of randomness that is none.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func ringOf(t *testing.T, data map[string][]byte) digest.Ring {
	t.Helper()
	ring, err := digest.NewRing(data)
	require.NoError(t, err)
	return ring
}

// replica is a running Keyring and its log.
type replica struct {
	*keyring.Keyring

	lines   logtest.Lines
	mu      sync.Mutex
	changes int
}

func newReplica(t *testing.T, s *server, random io.Reader) *replica {
	t.Helper()
	log, lines := logtest.New()
	r := &replica{lines: lines}
	k, err := keyring.New(keyring.Options{
		Config: s.config(), HTTPClient: http.DefaultClient, Namespace: namespace, Name: name, Random: random,
		Log: log,
	})
	require.NoError(t, err)
	r.Keyring = k
	k.OnChange(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changes++
	})
	return r
}

func (r *replica) start(t *testing.T) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	return r
}

func (r *replica) awaitRing(t *testing.T, want digest.Ring) {
	t.Helper()
	require.Eventually(t, func() bool { return r.Ring().Equal(want) }, wait, tick)
}

// awaitChanges waits until the ring has changed so often in all.
func (r *replica) awaitChanges(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return r.lines.Count("digest keys changed") == n && r.reported() == n }, wait, tick)
}

// reported counts the calls of OnChange's function.
func (r *replica) reported() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

func TestFirstReplicaCreatesTheSecret(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newReplica(t, s, endless(1))
	assert.False(t, r.Ready(), "nothing was read")
	r.start(t)
	r.awaitRing(t, ringOf(t, map[string][]byte{"0001": key(1)}))
	assert.True(t, r.Ready(), "it has a key")
	stored := s.stored()
	assert.Equal(t, map[string][]byte{"0001": key(1)}, stored.Data)
	assert.Equal(t, map[string]string{"app.kubernetes.io/managed-by": "pod-reloader"}, stored.Labels)
	assert.Nil(t, stored.Immutable, "keys are added to it")
	r.awaitChanges(t, 1)
	assert.Zero(t, r.lines.Count(string(key(1))), "a key is never logged")
}

func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	// Both find no Secret; while the first creates one, the second has been faster.
	faster := map[string][]byte{"0001": key(9)}
	s.created = func() { s.put(faster) }
	r := newReplica(t, s, endless(1)).start(t)
	r.awaitRing(t, ringOf(t, faster))
	assert.Equal(t, faster, s.stored().Data)

	other := newReplica(t, s, endless(2)).start(t)
	other.awaitRing(t, ringOf(t, faster))
	assert.Equal(t, 1, s.count("post"), "there was nothing to create any more")
}

func TestRotation(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(map[string][]byte{"0001": key(1)})
	r := newReplica(t, s, nil).start(t)
	require.Eventually(t, s.watched, wait, tick)
	r.awaitRing(t, ringOf(t, map[string][]byte{"0001": key(1)}))
	r.awaitChanges(t, 1)

	both := map[string][]byte{"0001": key(1), "0002": key(2)}
	s.put(both)
	r.awaitChanges(t, 2)
	assert.True(t, r.Ring().Equal(ringOf(t, both)), "it has both keys, not %s", r.Ring())
	s.put(both) // another resourceVersion, the same keys: the barrier is the change that follows
	s.put(map[string][]byte{"0002": key(2)})
	r.awaitRing(t, ringOf(t, map[string][]byte{"0002": key(2)}))
	r.awaitChanges(t, 3) // equal keys are no change
}

func TestUnusableContentChangesNothing(t *testing.T) {
	t.Parallel()
	good := map[string][]byte{"0001": key(1)}
	for name, bad := range map[string]map[string][]byte{
		"empty":     nil,
		"short key": {"0001": key(1), "0002": []byte("too short")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.put(good)
			r := newReplica(t, s, nil).start(t)
			require.Eventually(t, s.watched, wait, tick)
			r.awaitRing(t, ringOf(t, good))
			s.put(bad)
			s.put(bad)
			require.Eventually(t, func() bool { return r.lines.Count("not usable") == 1 }, wait, tick)
			assert.Equal(t, 1, r.lines.Count("it is created again with the keys in memory"))
			assert.Zero(t, r.lines.Count("a new key is created"))
			assert.True(t, r.Ring().Equal(ringOf(t, good)), "the last good ring stays in force")
			assert.Contains(t, r.Problem(), "the keys in memory stay in force")
			assert.Contains(t, r.Problem(), "(Secret pod-reloader/pod-reloader-digest-key: the digest-key Secret")
			better := map[string][]byte{"0001": key(1), "0002": key(2)}
			s.put(better)
			r.awaitRing(t, ringOf(t, better))
			assert.Equal(t, 1, r.lines.Count("not usable"), "the same problem is logged once")
			assert.Empty(t, r.Problem(), "the Secret is usable again")
			s.put(bad)
			require.Eventually(t, func() bool { return r.lines.Count("not usable") == 2 }, wait, tick, "it is logged again when it is back")
			assert.Zero(t, r.lines.Count("too short"), "what is in the Secret is not logged")
		})
	}
}

// The keys of a Secret that cannot be used are not known: a key that is not in memory may be among them.
func TestRefreshFailsWhileTheSecretIsUnusable(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newReplica(t, s, nil)
	now := time.Unix(1e9, 0)
	r.SetClock(func() time.Time { return now })
	s.put(map[string][]byte{"0001": key(1)})
	_, err := r.Refresh(t.Context())
	require.NoError(t, err)
	s.put(map[string][]byte{"0001": key(1), "0002": key(2), "0003": []byte("short")})
	now = now.Add(time.Second)
	_, err = r.Refresh(t.Context())
	require.EqualError(t, err, "the Secret of the digest key is not usable")
	assert.True(t, r.Ready(), "the keys in memory stay in force")
	s.put(map[string][]byte{"0001": key(1), "0002": key(2)})
	now = now.Add(time.Second)
	_, err = r.Refresh(t.Context())
	require.NoError(t, err)
	assert.Len(t, r.Ring().Keys(), 2)
}

func TestUnusableAtStart(t *testing.T) {
	t.Parallel()
	short := map[string][]byte{"0001": []byte("short")}
	for name, c := range map[string]struct {
		data    map[string][]byte
		refused []string
	}{
		"watched": {short, nil}, "with the permission to get only": {short, []string{"list", "watch"}}, "empty": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.put(c.data)
			s.refusing(http.StatusForbidden, c.refused...)
			r := newReplica(t, s, nil).start(t)
			require.Eventually(t, func() bool { return r.lines.Count("not usable") == 1 && s.count("get") > 2 }, wait, tick)
			assert.False(t, r.Ready(), "the Secret has no usable key")
			assert.Equal(t, 1, r.lines.Count("a new key is created"))
			assert.Zero(t, r.lines.Count("in memory"), "there are none")
			assert.Zero(t, s.count("post"), "a user has created it, and must correct it")
			s.put(map[string][]byte{"0001": key(1)})
			r.awaitRing(t, ringOf(t, map[string][]byte{"0001": key(1)}))
			assert.Equal(t, 1, r.lines.Count("not usable"), "the same problem is logged once")
			assert.Zero(t, r.lines.Count("cannot read or create"))
		})
	}
}

// With a key in memory, the watch delivers the corrected Secret. Without one, the permission to watch may be missing.
func TestUnusableSecretIsReadAgainOnlyWithoutAKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	with, without := newReplica(t, s, nil), newReplica(t, s, nil)
	s.put(map[string][]byte{"0001": key(1)})
	require.NoError(t, with.Ensure(t.Context()))
	s.put(map[string][]byte{"0001": []byte("short")})
	require.NoError(t, with.Ensure(t.Context()))
	assert.True(t, with.Ready(), "it keeps the key that it has read before")
	require.EqualError(t, without.Ensure(t.Context()), "the Secret of the digest key is not usable")
	s.refusing(http.StatusForbidden, "get")
	require.ErrorContains(t, with.Ensure(t.Context()), "read the Secret of the digest key", "another failure")
}

func TestDeletedSecretComesBackWithTheSameKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	both := map[string][]byte{"0001": key(1), "0002": key(2)}
	s.put(both)
	r := newReplica(t, s, endless(7)).start(t)
	require.Eventually(t, s.watched, wait, tick)
	r.awaitRing(t, ringOf(t, both))
	s.refusing(http.StatusInternalServerError, "post") // it is tried until it works
	s.remove()
	require.Eventually(t, func() bool { return s.count("post") > 0 }, wait, tick)
	assert.True(t, r.Ring().Equal(ringOf(t, both)), "both keys remain in memory, not %s", r.Ring())
	s.refusing(0)
	require.Eventually(t, func() bool { return s.stored() != nil }, wait, tick)
	assert.Equal(t, both, s.stored().Data)
	assert.True(t, r.Ring().Equal(ringOf(t, both)), "it still has both keys, not %s", r.Ring())
	s.remove() // the barrier: it is missed, and comes back, when all that was before is through
	require.Eventually(t, func() bool { return s.stored() != nil }, wait, tick)
	assert.Equal(t, 1, r.lines.Count("digest keys changed"), "nothing has changed")
}

func TestWithoutRandomnessThereIsNoKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newReplica(t, s, iotest.ErrReader(io.ErrClosedPipe)).start(t)
	require.Eventually(t, func() bool { return r.lines.Count("random bytes") == 1 }, wait, tick)
	assert.False(t, r.Ready(), "no key was made")
	assert.Zero(t, s.count("post"))
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newReplica(t, s, nil) // not started: its watch is as far behind as can be
	now := time.Unix(1e9, 0)
	r.SetClock(func() time.Time { return now })
	s.put(map[string][]byte{"0001": key(1)})
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			began, err := r.Refresh(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, now, began)
		})
	}
	callers.Wait()
	assert.True(t, r.Ready(), "the keys were read")
	assert.Equal(t, 1, s.count("get"), "at most one read a second")
	read := now
	now = now.Add(time.Second - 1)
	began, err := r.Refresh(t.Context())
	require.NoError(t, err)
	assert.Equal(t, read, began, "a caller sees that it has the outcome of an earlier read")
	now = now.Add(1)
	began, err = r.Refresh(t.Context())
	require.NoError(t, err)
	assert.Equal(t, now, began)
	assert.Equal(t, 2, s.count("get"))

	refused := newReplica(t, s, nil)
	refused.SetClock(func() time.Time { return now })
	s.refusing(http.StatusForbidden, "get")
	for range 2 {
		_, err := refused.Refresh(t.Context())
		require.ErrorContains(t, err, "read the Secret of the digest key")
		assert.True(t, apierrors.IsForbidden(err), "the cause stays in the error")
	}
	assert.Equal(t, 3, s.count("get"), "a failure counts as a read")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = newReplica(t, s, nil).Refresh(cancelled)
	require.Error(t, err)
}

func TestOptionsThatAreMissing(t *testing.T) {
	t.Parallel()
	for missing, remove := range map[string]func(*keyring.Options){
		"all":        func(o *keyring.Options) { *o = keyring.Options{} },
		"Config":     func(o *keyring.Options) { o.Config = nil },
		"HTTPClient": func(o *keyring.Options) { o.HTTPClient = nil },
		"Namespace":  func(o *keyring.Options) { o.Namespace = "" },
		"Name":       func(o *keyring.Options) { o.Name = "" },
	} {
		o := keyring.Options{Config: &rest.Config{}, HTTPClient: http.DefaultClient, Namespace: namespace, Name: name}
		remove(&o)
		_, err := keyring.New(o)
		assert.ErrorContains(t, err, "a keyring needs", "missing: %s", missing)
	}
}

// The digest key is needed before anything else works: no limit of the client's may delay it.
func TestRequestsAreNotLimitedByTheClient(t *testing.T) {
	t.Parallel()
	k, err := keyring.New(keyring.Options{Config: &rest.Config{QPS: 1}, HTTPClient: http.DefaultClient, Namespace: namespace, Name: name})
	require.NoError(t, err)
	assert.Nil(t, k.RateLimiter())
}
