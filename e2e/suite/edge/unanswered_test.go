package edge_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// behindProxy is an installation that reaches the API server through a proxy, with a workload that depends on a ConfigMap and a Secret.
func behindProxy(t *testing.T, cp *controlplane.ControlPlane) (*faultyProxy, *fixture.Fixture, observe.Workload) {
	t.Helper()
	proxy := &faultyProxy{}
	in := installation.NewPromptInTurn(t, cp, installation.Options{LongLease: true, Connect: func(config *rest.Config) { proxy.serve(t, config) }})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}})
	s.AwaitKnown(w)
	return proxy, s, w
}

// A proxy before the API server accepts watches of Secrets and never answers them: it shows in a metric, an Event and `why`, a change is
// acted on, if late, and other configuration as ever. Then it does the same with lists, of which some get a part of their answer. When the
// proxy answers again, so is everything else: the program gives up the lists that have no answer.
func watchThatIsNeverAnswered(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	proxy, s, w := behindProxy(t, cp)

	proxy.begin(silentWatches, "/secrets")
	assertBlindToSecrets(s, w)

	proxy.begin(stoppedLists, "/api/v1/secrets")
	s.Await("lists without an answer, and with a part of one", func() error {
		if n := proxy.met(); n < 2 {
			return fmt.Errorf("%d lists", n)
		}
		return nil
	})
	proxy.end()
	assertSeesSecretsAgain(s, w)
}

// A proxy ends lists early, as if that was all: what is missing from them is not deleted. It shows in the metrics, and other configuration
// is acted on as ever. When lists are whole again, so is everything else. The Event, which `why` repeats, comes only after a watch has
// failed for 90 s, for whatever reason: watchThatIsNeverAnswered waits for it.
func listsThatEndEarly(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	proxy, s, w := behindProxy(t, cp)

	changes := 0
	for _, list := range []struct{ path, resource string }{{"/api/v1/secrets", "secrets"}, {"/apis/apps/v1/deployments", "deployments.apps"}} {
		proxy.begin(shortLists, list.path)
		s.Await("the metrics of "+list.resource, func() error { return incomplete(s, list.resource) })
		changes++
		s.SetConfigMap("app", "key", list.resource)
		s.AwaitChanges(w, changes, "nothing that the pods require is missing")
		s.AwaitAdopted(w, "secret/db")

		proxy.end()
		s.Await("the watch of "+list.resource, func() error { return healthOf(s, list.resource, 1) })
		changes++
		s.SetSecret("db", "key", list.resource)
		s.AwaitChanges(w, changes, "the watch works again")
	}
	s.AwaitExactly(changes, "once each", w)
	s.Reported()
	for _, event := range s.Events(w) {
		require.NotEqual(t, "ReloadHeld", event.Reason, event.Note)
	}
}

// incomplete requires that the watch of a resource fails on each replica, and that its lists are counted as incomplete.
func incomplete(s *fixture.Fixture, resource string) error {
	metrics, err := s.Installation.Metrics(s.Context())
	if err != nil {
		return err
	}
	if metrics.Sum("pod_reloader_watch_failures_total", "resource", resource, "reason", "incomplete") == 0 {
		return errors.New("no list is incomplete")
	}
	return healthOf(s, resource, 0)
}
