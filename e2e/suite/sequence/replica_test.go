package sequence_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
)

// The leader freezes, another one takes over and reloads, the first one thaws and finishes what it was at.
func frozenLeaderComesBack(t *testing.T, in *installation.Installation) {
	t.Helper()
	d := newDowntime(t, in)
	s := d.Fixture
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	first := leadForShort(t, d)
	impatient := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":3}]`))
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: in.WebhookConfiguration()}}
	require.NoError(t, s.Patch(t.Context(), configuration, impatient), "the frozen replica does not answer")

	first.Freeze()
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "the standby takes over when the lease has run out")
	first.Thaw()
	s.Await("the first one to notice that the lease is the other one's", func() error {
		leader, err := in.Leader(s.Patiently())
		if err == nil && leader == first {
			err = errors.New("it says that it leads")
		}
		return err
	})

	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(2, "the new leader goes on, and the old one changed nothing after it came back", w)
}

// leadForShort replaces the replicas by two, of which the first leads and has the default lease, which the other one waits for.
func leadForShort(t *testing.T, d *downtime) (leader *installation.Replica) {
	t.Helper()
	before := d.in.Replicas()
	first, err := d.in.AddReplica(d.Patiently(), installation.ReplicaOptions{
		Args: []string{"--leader-election-lease-duration=15s", "--leader-election-renew-deadline=10s"},
	})
	require.NoError(t, err)
	for _, replica := range before {
		require.NoError(t, d.in.RemoveReplica(d.Patiently(), replica))
	}
	leader, err = d.in.Leader(d.Patiently())
	require.NoError(t, err)
	require.Equal(t, first, leader)
	_, err = d.in.AddReplica(d.Patiently(), installation.ReplicaOptions{})
	require.NoError(t, err)
	return first
}

// TestOtherInstallations has the sequences that need an installation of their own.
func TestOtherInstallations(t *testing.T) {
	t.Parallel()
	installation.InTurn(t, controlplane.Options{}, []installation.Turn{
		{Name: "NamespaceLeavesTheScopeAndReturns", Run: namespaceLeavesTheScopeAndReturns},
		{Name: "ListExtendedInDirectMode", Run: listExtendedInDirectMode},
		{Name: "ReplicasWithDifferentKeys", Run: replicasWithDifferentKeys},
		{Name: "RequiredSecretThatChangesRightAfterItsCreation", Run: requiredSecretThatChangesRightAfterItsCreation},
	})
}

// Two replicas have different keys in memory, as during a failed upgrade: no restart but for changes, and no endless writes. While the API
// server asks the replica that does not lead, its webhook cannot verify what the leader asks for, so a reload waits. Canaries would, too.
func replicasWithDifferentKeys(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	args := []string{"--refractory=0s", "--settle=100ms", "--shutdown-grace-period=200ms"}
	in := installation.NewInTurn(t, cp, installation.Options{Replicas: 1, Patient: true, LongLease: true, Args: args})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	first, record := in.Replicas()[0], s.Get(w).GetAnnotations()[fixture.ConfigRecord]
	require.NotEmpty(t, record)
	other, err := in.AddReplica(t.Context(), installation.ReplicaOptions{Args: append(args, "--digest-key-secret=another-key")})
	require.NoError(t, err)

	written := countWrites(s)
	for _, asked := range []*installation.Replica{other, first, other, first} {
		ask(s, asked, w)
		for n := range 5 {
			answer := s.MergeWorkload(w, `{"metadata":{"labels":{"n":"`+string(rune('a'+n))+`"}}}`)
			assert.Equal(t, record, answer.GetAnnotations()[fixture.ConfigRecord], "%s leaves the Record of the other key alone", asked.Name())
		}
	}
	s.AwaitExactly(0, "another key restarts nothing by itself", w)
	assert.Empty(t, written(), "nothing has changed")

	ask(s, other, w)
	s.SetConfigMap("app", "key", "2")
	s.AwaitEvent(w, "StampLost", "the pods are not restarted")
	require.NoError(t, s.Watcher.Sync(s.Patiently()))
	s.RequireChanges(w, 0, "the webhook has another key than the leader")
	ask(s, first, w)
	s.AwaitExactly(1, "they have the same key again", w)
	assert.Less(t, len(written()), 40, "the leader tries less and less often: %v", written().Count())

	written = countWrites(s)
	require.NoError(t, in.RemoveReplica(t.Context(), first))
	s.AwaitEvent(w, "RecordAdopted", "digest")
	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(2, "the replica with the other key continues from the stored state, and another key restarts nothing by itself", w)
	assert.Less(t, len(written()), 5, "the other key takes over once: %v", written().Count())
	assert.NotZero(t, other.PID())
}

// countWrites returns a function that returns the writes of the installation to Deployments of the namespace from now on.
func countWrites(s *fixture.Fixture) func() controlplane.Requests {
	s.Helper()
	in := s.Installation
	mark, err := in.ControlPlane().Audit().Mark()
	require.NoError(s, err)
	return func() controlplane.Requests {
		s.Helper()
		requests, err := in.ControlPlane().Audit().Since(s.Patiently(), mark)
		require.NoError(s, err)
		return requests.By(in.Identity().User).In(s.Namespace).Writes().Where(func(r controlplane.Request) bool {
			return r.Resource == "deployments"
		})
	}
}

// A list a becomes a,b in direct mode, where nothing is stamped at admission: b is unknown, not created.
func listExtendedInDirectMode(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewInTurn(t, cp, installation.Options{
		Replicas: 1, KeepRunning: true, LongLease: true, WithoutWebhook: true, Args: []string{"--refractory=0s", "--settle=100ms"},
	})
	s := fixture.New(t, in)
	s.ConfigMap("a", fixture.Data{"key": "1"})
	s.ConfigMap("b", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"a"}, Replicas: 1})
	s.AwaitKnown(w)
	s.SetConfigMap("a", "key", "2")
	s.AwaitChanges(w, 1, "a changed")
	s.MergeWorkload(w, `{"metadata":{"annotations":{"`+fixture.ConfigMaps+`":"a,b"}}}`)
	s.AwaitAdopted(w, "configmap/b")
	s.AwaitExactly(1, "b was there before: that is no change of it", w)
	s.SetConfigMap("b", "key", "2")
	s.AwaitChanges(w, 2, "now b changed")
	s.SetConfigMap("a", "key", "3")
	s.AwaitExactly(3, "and a still counts", w)
}

// A namespace leaves the scope and enters it again.
func namespaceLeavesTheScopeAndReturns(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewInTurn(t, cp, installation.Options{
		Replicas: 1, KeepRunning: true, Patient: true, LongLease: true, Components: []string{"namespace-selector"},
		Args: []string{"--refractory=0s", "--settle=100ms"},
	})
	s, witness := fixture.New(t, in), fixture.New(t, in, map[string]string{"pod-reloader": "disabled"})
	label := func(s *fixture.Fixture, value string) {
		t.Helper()
		_, err := cp.Kubectl(t.Context(), "label", "--overwrite", "namespace", s.Namespace, "pod-reloader="+value)
		require.NoError(t, err)
	}
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1})
	s.AwaitKnown(w)
	witness.ConfigMap("app", fixture.Data{"key": "1"})
	entering := witness.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})

	// Namespaces come to the loop in order, but not in step with configuration: when one has entered, the other has left.
	label(s, "disabled")
	label(witness, "enabled")
	witness.AwaitKnown(entering)
	s.SetConfigMap("app", "key", "2")
	s.AwaitExactly(0, "the namespace is out of scope", w)
	label(s, "enabled")
	s.AwaitExactly(1, "back in scope, its pods have an old content", w)
}
