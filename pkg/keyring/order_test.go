package keyring_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An answer can be on its way while the watch delivers what has been stored since.
func TestDelayedAnswerDoesNotReplaceWhatTheWatchHasDelivered(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	older, newer := map[string][]byte{"0001": key(1)}, map[string][]byte{"0001": key(1), "0002": key(2)}
	s.put(older)
	r := newReplica(t, s, nil).start(t)
	require.Eventually(t, s.watched, wait, tick)
	r.awaitRing(t, ringOf(t, older))
	r.awaitChanges(t, 1)

	proceed, read := make(chan struct{}), make(chan error)
	s.mu.Lock()
	s.answering = func() {
		s.put(newer)
		<-proceed
	}
	s.mu.Unlock()
	go func() {
		_, err := r.Refresh(t.Context())
		read <- err
	}()
	r.awaitRing(t, ringOf(t, newer))
	close(proceed)
	require.NoError(t, <-read)
	require.True(t, r.Ring().Equal(ringOf(t, newer)), "the newest key is not in force any more")
	r.awaitChanges(t, 2)
}

// The watch is behind the API server: what it delivers while the Secret is read, or after, may be older than what was read.
func TestWatchThatIsBehindDoesNotReplaceWhatWasRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during  bool
		changes int
	}{
		"delivers an older one during the read": {during: true, changes: 5},
		"delivers an older one after the read":  {changes: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			first, older := map[string][]byte{"0001": key(1)}, map[string][]byte{"0001": key(1), "0002": key(2)}
			newest := map[string][]byte{"0001": key(1), "0002": key(2), "0003": key(3)}
			s.put(map[string][]byte{"0000": key(9)})
			r := newReplica(t, s, nil).start(t)
			require.Eventually(t, func() bool { return s.watched() && s.count("get") > 0 }, wait, tick, "nothing of the start is still to come")
			r.awaitChanges(t, 1)
			s.put(first) // the watch delivers it after its listing
			r.awaitChanges(t, 2)
			s.lag()
			s.put(older)
			s.put(newest)
			deliver := func() {
				s.deliver(1)
				r.awaitRing(t, ringOf(t, older))
			}
			if c.during {
				s.mu.Lock()
				s.answering = deliver
				s.mu.Unlock()
			}
			_, err := r.Refresh(t.Context())
			require.NoError(t, err)
			require.True(t, r.Ring().Equal(ringOf(t, newest)), "a key that was in use before the read is missing")
			last := map[string][]byte{"0004": key(4)}
			s.put(last)
			s.deliver(0)
			r.awaitRing(t, ringOf(t, last))
			r.awaitChanges(t, c.changes)
		})
	}
}

// A backup of etcd was restored: what is read is older than what is known, although nothing newer has come since the read began. The
// watch notices it only when it lists again.
func TestReadAfterARestoreOfABackup(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(map[string][]byte{"0000": key(9)})
	r := newReplica(t, s, nil).start(t)
	require.Eventually(t, s.watched, wait, tick)
	r.awaitChanges(t, 1)
	s.put(map[string][]byte{"0001": key(1)}) // the watch delivers it after its listing
	r.awaitChanges(t, 2)
	s.lag()
	restored := map[string][]byte{"0002": key(2)}
	s.restore(restored)
	_, err := r.Refresh(t.Context())
	require.NoError(t, err)
	assert.True(t, r.Ring().Equal(ringOf(t, restored)), "the keys that are in use now are not known")
}

// The watch is behind: it delivers the deletion of a Secret when its successor was read already.
func TestLateDeletionDoesNotBringBackOlderKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(map[string][]byte{"0000": key(9)})
	r := newReplica(t, s, nil).start(t)
	require.Eventually(t, s.watched, wait, tick)
	r.awaitChanges(t, 1)
	s.put(map[string][]byte{"0001": key(1)})
	r.awaitChanges(t, 2)
	s.lag()
	s.remove()
	s.put(map[string][]byte{"0002": key(2)})
	newest := map[string][]byte{"0002": key(2), "0003": key(3)}
	s.put(newest)
	_, err := r.Refresh(t.Context())
	require.NoError(t, err)
	r.awaitChanges(t, 3)
	last := map[string][]byte{"0004": key(4)}
	s.put(last)
	s.deliver(0)
	r.awaitRing(t, ringOf(t, last))
	r.awaitChanges(t, 4)
}

// What was read may be replaced by a listing from an API server that is behind: the outcome of the read promises nothing any more.
func TestRefreshReadsAgainAfterTheWatchHasListedTheSecretOrHasSeenItGo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(map[string][]byte{"0001": key(1)})
	r := newReplica(t, s, nil)
	now := time.Unix(1e9, 0)
	r.SetClock(func() time.Time { return now })
	r.start(t)
	require.Eventually(t, s.watched, wait, tick)
	r.awaitChanges(t, 1)
	s.put(map[string][]byte{"0002": key(2)}) // the watch delivers it after its listing
	r.awaitChanges(t, 2)
	_, err := r.Refresh(t.Context())
	require.NoError(t, err)
	s.refusing(http.StatusForbidden, "post")
	s.remove()
	require.Eventually(t, func() bool { return s.count("post") > 0 }, wait, tick)
	_, err = r.Refresh(t.Context())
	require.True(t, apierrors.IsNotFound(err), "the outcome of the read before: %v", err)
}
