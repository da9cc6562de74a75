package edge_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// The leader freezes while a write of it is in flight, in direct mode. Another one takes over and reloads twice, so that the template is
// again the one that the write was computed from. Then the write goes on, and after that the first leader.
func lateWriteOfFrozenLeader(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		WithoutWebhook: true, Args: []string{
			// The API server gives the write up after half a minute.
			"--leader-election-lease-duration=8s", "--leader-election-renew-deadline=6s", "--refractory=0s",
		},
	})
	conclusive := poll.Repeat(t, 3, "the API server gave the write up before the new leader had reloaded twice", func(int) bool {
		s := fixture.New(t, in)
		require.NoError(t, in.StartAll(s.Patiently()), "the first leader of the attempt before has ended")
		return lateWriteChangesNothing(s)
	})
	require.True(t, conclusive, "each write was given up")
}

// lateWriteChangesNothing reports false, and ends the first leader, where its write was given up before the template was that of before.
func lateWriteChangesNothing(s *fixture.Fixture) (conclusive bool) {
	s.Helper()
	in := s.Installation
	w := fleetOf(s, 1)[0]
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "so that the template has a hash")
	s.Settled()
	hash := fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
	require.NotEmpty(s, hash)
	mark, err := in.ControlPlane().Audit().Mark()
	require.NoError(s, err)

	first, err := in.Leader(s.Patiently())
	require.NoError(s, err)
	held := holdWrite(s, in.Identity().User)
	s.SetConfigMap("app", "key", "3")
	s.Await("a write in flight", held.inFlight)
	first.Freeze()
	s.AwaitChanges(w, 2, "the standby takes over when the lease has run out")
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 3, "the new leader goes on")
	reloaded := s.Get(w)
	require.Equal(s, hash, fixture.TemplateAnnotations(reloaded)[fixture.ConfigHash], "the template is that of before the write")
	if held.inFlight() != nil {
		first.Thaw()
		awaitEnd(s, first)
		return false
	}

	held.release()
	requireFailedTest(s, mark)
	first.Thaw()
	awaitEnd(s, first)
	s.AwaitExactly(3, "the late write changes nothing", w)
	assert.Equal(s, fixture.Ours(reloaded), fixture.Ours(s.Get(w)), "nor does it change a managed annotation")
	s.SetConfigMap("app", "key", "4")
	s.AwaitExactly(4, "the new leader goes on", w)
	return true
}

// awaitEnd waits until a replica that was frozen finds its lease gone, and ends.
func awaitEnd(s *fixture.Fixture, replica *installation.Replica) {
	s.Helper()
	select {
	case <-replica.Exited():
	case <-s.Patiently().Done():
		require.Fail(s, "a replica that has lost its lease goes on")
	}
}

// requireFailedTest requires that the first write of a Deployment by the installation since a mark was answered, and not stored.
func requireFailedTest(s *fixture.Fixture, since controlplane.Mark) {
	s.Helper()
	in := s.Installation
	requests, err := in.ControlPlane().Audit().Since(s.Patiently(), since)
	require.NoError(s, err)
	patches := requests.By(in.Identity().User).In(s.Namespace).Where(func(r controlplane.Request) bool {
		return r.What() == "patch deployments"
	})
	require.NotEmpty(s, patches)
	assert.Equal(s, http.StatusUnprocessableEntity, patches[0].Code, "a test operation of the late write fails: %s", patches[0].Message)
}

// heldWrite holds the first write of a user back.
type heldWrite struct {
	user         string
	held, flying atomic.Bool
	released     chan struct{}
	releaseOnce  sync.Once
}

// holdWrite registers a validating webhook that does not answer about the first write of a user. The API server gives such a write up after
// half a minute.
func holdWrite(s *fixture.Fixture, user string) *heldWrite {
	s.Helper()
	h := &heldWrite{user: user, released: make(chan struct{})}
	fixture.Webhook{Patient: true, Answer: h.answer}.Register(s)
	s.Cleanup(h.release)
	return h
}

func (h *heldWrite) answer(ctx context.Context, request *admissionv1.AdmissionRequest) string {
	if request.UserInfo.Username != h.user || !h.held.CompareAndSwap(false, true) {
		return ""
	}
	h.flying.Store(true)
	defer h.flying.Store(false)
	select {
	case <-h.released:
	case <-ctx.Done():
	}
	return ""
}

// inFlight returns an error unless a write is held back.
func (h *heldWrite) inFlight() error {
	if !h.flying.Load() {
		return errors.New("no write is held back")
	}
	return nil
}

func (h *heldWrite) release() { h.releaseOnce.Do(func() { close(h.released) }) }
