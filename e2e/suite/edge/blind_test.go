package edge_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// The permissions to list and watch Secrets are withdrawn while get stays: it shows in a metric, an Event and `why`, a change is
// acted on, if late, and other configuration as ever. When the permissions are back, so is everything else.
func permissionsToWatchAreWithdrawn(t *testing.T, in *installation.Installation) {
	t.Helper()
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}})

	role := &rbacv1.ClusterRole{}
	require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Name: "pod-reloader"}, role))
	rules := slices.Clone(role.Rules)
	for n, rule := range role.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			role.Rules[n].Resources = []string{"configmaps"}
		}
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	require.NoError(t, s.Update(t.Context(), role))
	restart(s, in.ControlPlane().Component(controlplane.APIServer), true) // it does not end watches that were allowed once
	assertBlindToSecrets(s, w)

	require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Name: "pod-reloader"}, role))
	role.Rules = rules
	require.NoError(t, s.Update(t.Context(), role))
	assertSeesSecretsAgain(s, w)
}

// With roles of some namespaces, the report is on the Deployment of the installation as well.
func permissionsToWatchOneNamespaceAreWithdrawn(t *testing.T, s *fixture.Fixture) {
	t.Helper()
	role := &rbacv1.Role{}
	require.NoError(t, s.Client.Get(t.Context(), types.NamespacedName{Namespace: s.Namespace, Name: "pod-reloader-workloads"}, role))
	for n, rule := range role.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			role.Rules[n].Resources = []string{"configmaps"}
		}
	}
	require.NoError(t, s.Update(t.Context(), role))
	restart(s, s.Installation.ControlPlane().Component(controlplane.APIServer), true) // it does not end watches that were allowed once
	patiently(s, "an Event", func() error { return installationEvent(s, "WatchFailing") })
}

// assertBlindToSecrets requires of a workload web with the ConfigMap app and the Secret db that a change of the ConfigMap reloads it as
// ever and one of the Secret late, and that the watch of Secrets is reported.
func assertBlindToSecrets(s *fixture.Fixture, w observe.Workload) {
	s.Helper()
	patiently(s, "the metric of the watch", func() error { return health(s, 0) })
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "ConfigMaps are watched")
	s.SetSecret("db", "key", "2")
	patiently(s, "the re-check to find the change of the Secret", func() error {
		if n := len(s.Watcher.Changes(w)); n < 2 {
			return fmt.Errorf("%d restarts", n)
		}
		return nil
	})
	patiently(s, "an Event", func() error { return installationEvent(s, "WatchFailing") })
	output, err := s.Installation.Why(s.Context(), "deployment/web", "-n", s.Namespace)
	require.NoError(s, err)
	assert.Contains(s, output, "A watch of pod-reloader fails")
	output, err = s.Installation.Why(s.Context(), "--all", "-n", "default")
	require.NoError(s, err)
	assert.Contains(s, output, "A watch of pod-reloader fails", "also where no workload is listed")
}

// assertSeesSecretsAgain requires that the end of the failure is reported, and that a change of the Secret reloads once.
func assertSeesSecretsAgain(s *fixture.Fixture, w observe.Workload) {
	s.Helper()
	patiently(s, "the watch", func() error { return health(s, 1) })
	patiently(s, "an Event", func() error { return installationEvent(s, "WatchRecovered") })
	s.SetSecret("db", "key", "3")
	s.AwaitExactly(3, "the watch works again", w)
}

// patiently waits for what takes minutes: a watch must fail for a while to be reported, and is re-checked each minute.
func patiently(s *fixture.Fixture, what string, holds func() error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(s, poll.Until(ctx, what, time.Second, func(context.Context) error { return holds() }))
}

// health compares the metric of the watch of Secrets on each replica.
func health(s *fixture.Fixture, want float64) error { return healthOf(s, "secrets", want) }

// healthOf is health for the watch of a resource.
func healthOf(s *fixture.Fixture, resource string, want float64) error {
	metrics, err := s.Installation.Metrics(s.Context())
	if err != nil {
		return err
	}
	replicas := float64(len(s.Installation.Replicas()))
	if got := metrics.Sum("pod_reloader_watch_healthy", "resource", resource); got != want*replicas {
		return fmt.Errorf("the watch's metric is %v in total, and not %v on each of %v replicas", got, want, replicas)
	}
	return nil
}

// installationEvent looks for an Event on the installation's own Deployment. kubectl describe shows only Events that have its UID.
func installationEvent(s *fixture.Fixture, reason string) error {
	own := &appsv1.Deployment{}
	if err := s.Client.Get(s.Context(), types.NamespacedName{Namespace: s.Installation.Namespace(), Name: "pod-reloader"}, own); err != nil {
		return err
	}
	list := &eventsv1.EventList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.Installation.Namespace())); err != nil {
		return err
	}
	missing := fmt.Errorf("no Event %s", reason)
	for _, event := range list.Items {
		if event.Reason != reason || event.Regarding.Kind != "Deployment" || event.Regarding.Name != own.Name {
			continue
		}
		if event.Regarding.UID == own.UID {
			return nil
		}
		missing = fmt.Errorf("the Event %s has the UID %q, and not %q", reason, event.Regarding.UID, own.UID)
	}
	return missing
}
