package install_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// TestTwoReleases installs two releases of the chart into one namespace. Each handles the namespaces of a team, and goes on when the
// other one is upgraded or uninstalled. Then both handle the same workload.
func TestTwoReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := client.ObjectKey{Namespace: ours.Namespace, Name: "a"}, client.ObjectKey{Namespace: ours.Namespace, Name: "b"}
	w.kubelet.deployments = []client.ObjectKey{a, b}
	teamA, teamB := newTeam(t, w, "a"), newTeam(t, w, "b")
	w.installRelease(t, "a", "namespaceSelector.matchLabels.team=a")
	w.installRelease(t, "b", "namespaceSelector.matchLabels.team=b")
	require.NotEqual(t, string(w.bundleOf(t, "a")), string(w.bundleOf(t, "b")), "each has a CA of its own")
	require.NotEqual(t, w.awaitLeader(t, a), w.awaitLeader(t, b), "each has a leader")

	ofA, ofB := teamA.creates("web"), teamB.creates("web")
	teamA.awaitKnown(ofA)
	teamB.awaitKnown(ofB)
	teamA.configures("web", "good evening")
	teamB.configures("web", "good evening")
	teamA.reloadedOnce(ofA, 1)
	teamB.reloadedOnce(ofB, 1)

	bundle := w.bundleOf(t, "a")
	w.installRelease(t, "b", "namespaceSelector.matchLabels.team=b", "replicas=1", "podDisruptionBudget.enabled=false")
	w.helm(t, "uninstall", "b", "--wait")
	require.NoError(t, w.kubelet.follow(patiently(t)))
	for _, c := range w.kubelet.running() {
		assert.True(t, strings.HasPrefix(c.Name(), "a-"), "%s runs on", c.Name())
	}
	assert.Equal(t, string(bundle), string(w.bundleOf(t, "a")))
	teamA.configures("web", "good night")
	teamB.configures("web", "good night")
	teamA.reloadedOnce(ofA, 2)
	require.NoError(t, teamB.watcher.Sync(patiently(t)))
	teamB.requireChanges(ofB, 1, "no installation handles the namespace any more")

	// The change of the meantime is found, once.
	w.installRelease(t, "b", "namespaceSelector.matchLabels.team=b")
	teamB.reloadedOnce(ofB, 2)
	teamA.requireChanges(ofA, 2, "another release was installed")

	releasesShareAWorkload(t, w)
	releasesWithOtherFlagsShareAWorkload(t, w)
	workloadChangesSides(t, w)

	// The namespace is deleted, without what the releases have outside of it.
	w.kubectl(t, "delete", "namespace", ours.Namespace)
	require.NoError(t, w.kubelet.follow(patiently(t)))
	require.Empty(t, w.kubelet.running(), "nothing of pod-reloader runs")
	teamA.labels(ofA, "while-the-webhook-has-no-service")
	teamB.configures("web", "goodbye")
	w.installRelease(t, "a")
	teamA.settled()
	teamA.requireChanges(ofA, 2, "to be installed again restarts nothing")
	teamB.requireChanges(ofB, 2, "without the key, what is found is adopted")
	teamB.configures("web", "hello at last")
	teamB.reloadedOnce(ofB, 3)
}

// newTeam is a user with a namespace of a team.
func newTeam(t *testing.T, w *world, team string) *user {
	t.Helper()
	namespace := w.Namespace(t, map[string]string{"team": team})
	return &user{T: t, world: w, namespace: namespace, watcher: observe.New(t, w.Admin(), namespace), canaries: new(int)}
}

// reloadedOnce waits for the n-th change of a template, and requires that there is no other one.
func (u *user) reloadedOnce(of observe.Workload, n int) {
	u.Helper()
	u.awaitChanges(of, n, "the content changed")
	u.settled()
	u.requireChanges(of, n, "once")
}

// installRelease installs or upgrades a release, with the guard.
func (w *world) installRelease(t *testing.T, name string, values ...string) {
	t.Helper()
	args := []string{"upgrade", "--install", name, w.chart(), "--create-namespace", "--reset-values", "--set", "guard.enabled=true"}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	w.helm(t, args...)
	require.NoError(t, w.kubelet.follow(patiently(t)), "the replicas of %s become ready", name)
}

// bundleOf waits until a release trusts a CA, and returns the caBundle.
func (w *world) bundleOf(t *testing.T, name string) []byte {
	t.Helper()
	object := &admissionv1.MutatingWebhookConfiguration{}
	require.NoError(t, await(patiently(t), "the caBundle of "+name, func(ctx context.Context) error {
		if err := w.Client().Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
			return err
		}
		if len(object.Webhooks[0].ClientConfig.CABundle) == 0 {
			return errors.New("it is empty")
		}
		return nil
	}))
	return object.Webhooks[0].ClientConfig.CABundle
}

// awaitLeader waits until a replica of a release has the lease of the release, and returns the holder.
func (w *world) awaitLeader(t *testing.T, of client.ObjectKey) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	require.NoError(t, await(patiently(t), "the leader of "+of.Name, func(ctx context.Context) error {
		if err := w.Client().Get(ctx, of, lease); err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
			return errors.New("the lease has no holder")
		}
		return nil
	}))
	return *lease.Spec.HolderIdentity
}
