package keyring_test

import (
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/keyring"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

func TestRefusalIsLoggedOnceAndRetried(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.refusing(http.StatusForbidden, "get", "list", "watch", "post")
	r := newReplica(t, s, endless(1)).start(t)
	require.Eventually(t, func() bool { return s.count("get") > 3 && s.count("watch") > 3 }, wait, tick)
	assert.False(t, r.Ready(), "no permission: there is no key")
	require.Eventually(t, func() bool {
		return r.lines.Count("not allowed to read the Secret of the digest key") == 1 && r.lines.Count("not allowed to watch; grant get, list and watch; retrying") == 1
	}, wait, tick)
	assert.Equal(t, 1, r.lines.Count("cannot read or create the Secret of the digest key"), "the API server may have just started")
	s.refusing(0)
	r.awaitRing(t, ringOf(t, map[string][]byte{"0001": key(1)}))
	require.Eventually(t, func() bool { return r.lines.Count("watching again") == 1 }, wait, tick)
}

// Where no other Secrets are watched, this is all that shows the refusal.
func TestRefusedWatchIsAFailingOne(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.refusing(http.StatusForbidden, "list", "watch")
	monitor := &watchhealth.Monitor{}
	k, err := keyring.New(keyring.Options{
		Config: s.config(), HTTPClient: &http.Client{Transport: monitor.Wrap(http.DefaultTransport)}, Namespace: namespace, Name: name, Random: endless(1), Log: logr.Discard(),
	})
	require.NoError(t, err)
	(&replica{Keyring: k}).start(t)
	require.Eventually(t, func() bool { return monitor.Failing("secrets/"+name, namespace) }, wait, tick)
	s.refusing(0)
	require.Eventually(t, func() bool { return !monitor.Failing("secrets/"+name, namespace) }, wait, tick)
}

// The log says which permission is missing, and what to do without it.
func TestRefusedCreationIsRetried(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.refusing(http.StatusForbidden, "post")
	r := newReplica(t, s, endless(1)).start(t)
	require.Eventually(t, func() bool { return s.count("post") > 3 }, wait, tick)
	assert.False(t, r.Ready(), "the Secret cannot be created: there is no key")
	require.Eventually(t, func() bool {
		return r.lines.Count("grant create on Secrets in this namespace, or create the Secret") == 1
	}, wait, tick)
	given := map[string][]byte{"ours": key(7)}
	s.put(given)
	r.awaitRing(t, ringOf(t, given))
}

// An admission plugin refuses with the same code as the authorizers, and no permission helps.
func TestCreationThatAQuotaRefusesIsNoMissingPermission(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.denial = `secrets "` + name + `" is forbidden: exceeded quota: objects, requested: count/secrets=1, used: count/secrets=9, limited: count/secrets=9`
	s.refusing(http.StatusForbidden, "post")
	r := newReplica(t, s, endless(1)).start(t)
	require.Eventually(t, func() bool { return s.count("post") > 3 }, wait, tick)
	assert.Zero(t, r.lines.Count("not allowed to create"))
	assert.Equal(t, 1, r.lines.Count("cannot read or create the Secret of the digest key"))
	s.refusing(http.StatusInternalServerError, "post")
	require.Eventually(t, func() bool { return r.lines.Count("cannot read or create the Secret of the digest key") == 2 }, wait, tick, "another problem is logged")
}

// A Secret that a user has created is read without the permission to create one.
func TestGivenSecretIsReadWithoutThePermissionToCreate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	given := map[string][]byte{"ours": key(7)}
	s.put(given)
	s.refusing(http.StatusForbidden, "post")
	r := newReplica(t, s, endless(1)).start(t)
	r.awaitRing(t, ringOf(t, given))
	assert.Zero(t, s.count("post"))
}

// A load balancer without a route answers 404. That does not mean that the Secret is absent: a new key in place of the
// stored one would be unknown to every Record.
func TestNotFoundByALoadBalancerCreatesNoKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.refusing(http.StatusNotFound, "get", "list", "watch")
	r := newReplica(t, s, endless(1)).start(t)
	require.Eventually(t, func() bool { return s.count("get") > 3 }, wait, tick)
	assert.Zero(t, s.count("post"))
	assert.False(t, r.Ready(), "the answer is not that of the API server: there is no key")
	assert.Equal(t, 1, r.lines.Count("cannot read or create"))
	s.refusing(0)
	r.awaitRing(t, ringOf(t, map[string][]byte{"0001": key(1)}))
}

// While the keys of a Secret that was deleted are in memory, another key in its place would lose what is due by them.
func TestRefusedCreationDoesNotAskForANewKeyWhileTheOldOnesAreInMemory(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	given := map[string][]byte{"ours": key(7)}
	s.put(given)
	s.refusing(http.StatusForbidden, "post")
	r := newReplica(t, s, endless(1)).start(t)
	require.Eventually(t, s.watched, wait, tick)
	r.awaitRing(t, ringOf(t, given))
	s.remove()
	require.Eventually(t, func() bool { return s.count("post") > 3 }, wait, tick)
	assert.Zero(t, r.lines.Count("with a key of 32 random bytes"))
	assert.Equal(t, 1, r.lines.Count("do not make a new key"))
	assert.Contains(t, r.Problem(), "do not make a new key")
	assert.True(t, r.Ring().Equal(ringOf(t, given)), "the keys remain in memory, not %s", r.Ring())
	s.refusing(0)
	require.Eventually(t, func() bool { return s.stored() != nil && r.Problem() == "" }, wait, tick)
	assert.Equal(t, given, s.stored().Data)
}
