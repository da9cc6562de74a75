package promise_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// A leader that ends between stamps and their Events, by SIGKILL and by SIGTERM: its successor writes those that are
// missing, and none a second time. The permission to create Events is away while the leader reloads, so that none is written.
func TestP8LeaderThatEndsLosesNoEvent(t *testing.T) {
	t.Parallel()
	cp := controlplane.New(t, controlplane.Podless())
	in := installation.New(t, cp, installation.Options{
		Args: []string{"--settle=200ms", "--refractory=0s", "--shutdown-grace-period=200ms"},
		Env:  []string{"METRICS_COUNT_BY_NAMESPACE=enabled"},
	})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "0"})
	var workloads []observe.Workload
	for n := range 40 {
		kind := fixture.Kinds[n%len(fixture.Kinds)]
		workloads = append(workloads, s.Workload(kind, "app"+strconv.Itoa(n), fixture.Uses{ConfigMaps: []string{"app"}}))
	}
	s.Settled()

	for n, end := range []func(*installation.Replica){
		(*installation.Replica).Kill,
		func(leader *installation.Replica) { require.NoError(t, leader.Stop(s.Patiently())) },
	} {
		round := n + 1
		leader, err := in.Leader(s.Patiently())
		require.NoError(t, err)
		giveBack := withdrawEvents(s)
		s.SetConfigMap("app", "key", strconv.Itoa(round))
		for _, w := range workloads {
			s.AwaitChanges(w, round, "its configuration has changed")
		}
		require.Equal(t, n*len(workloads), reportedInAll(s), "no reload of this round has its Event yet")
		end(leader)
		require.Zero(t, leader.PID(), "it runs no more")
		giveBack()
		for _, w := range workloads {
			s.Await(fmt.Sprintf("an Event for each reload of %s", w), func() error {
				if events := reported(s, w); events < round {
					return fmt.Errorf("there are %d Events for %d reloads", events, round)
				}
				return nil
			})
		}
		s.Await("the count of the reloads", func() error {
			n, err := countedReloads(s)
			if err == nil && n < len(workloads) {
				err = fmt.Errorf("%d of %d reloads are counted", n, len(workloads))
			}
			return err
		})
		require.NoError(t, leader.Start(s.Patiently()))
		s.Reported()
		// A kill between an Event and its count may lose the count; here the leader that ended has written none.
		total, err := countedReloads(s)
		require.NoError(t, err)
		assert.Equal(t, len(workloads), total, "the successor has counted each reload once")
		for _, w := range workloads {
			s.AssertChanges(w, round, "once")
			assert.Equal(t, round, reported(s, w), "%s: one Event for each reload", w)
		}
	}
}

// countedReloads returns how many reloads of a fixture the replicas that run have counted. One that was started again begins at 0.
func countedReloads(s *fixture.Fixture) (int, error) {
	s.Helper()
	metrics, err := s.Installation.Metrics(s.Context())
	return int(metrics.Sum("pod_reloader_namespace_reloads_total", "namespace", s.Namespace)), err
}

// withdrawEvents takes the installation's permission to create Events away, waits until it is gone, and returns what gives it
// back.
func withdrawEvents(s *fixture.Fixture) (giveBack func()) {
	s.Helper()
	var verbs []string
	set := func(to ...string) {
		s.Helper()
		role := &rbacv1.ClusterRole{}
		require.NoError(s, s.Client.Get(s.Context(), types.NamespacedName{Name: "pod-reloader"}, role))
		n := slices.IndexFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "events") })
		require.GreaterOrEqual(s, n, 0, "the role names Events")
		verbs, role.Rules[n].Verbs = role.Rules[n].Verbs, to
		require.NoError(s, s.Update(s.Context(), role))
	}
	in := s.Installation
	config, err := in.ControlPlane().Config(in.Identity())
	require.NoError(s, err)
	as, err := client.New(config, client.Options{})
	require.NoError(s, err)
	set("list")
	s.Await("the permission to create Events to be gone", func() error {
		event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "probe"}}
		if err := as.Create(s.Context(), event, client.DryRunAll); !apierrors.IsForbidden(err) {
			return errors.New("it is still there")
		}
		return nil
	})
	return func() { set(verbs...) }
}

// reported counts the reloads of a workload that Events report.
func reported(s *fixture.Fixture, w observe.Workload) int {
	s.Helper()
	return fixture.CountByReason(s.Events(w))["Reloaded"]
}

// reportedInAll counts those of all workloads of a fixture.
func reportedInAll(s *fixture.Fixture) int {
	s.Helper()
	all := &eventsv1.EventList{}
	require.NoError(s, s.List(s.Context(), all, client.InNamespace(s.Namespace)))
	return fixture.CountByReason(all.Items)["Reloaded"]
}
