package edge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// receiver keeps the alerts about workloads of one namespace, as a receiver of ALERT_SINK=webhook sees them.
type receiver struct {
	mu     sync.Mutex
	alerts map[string][]receivedAlert
	texts  []string
}

type receivedAlert struct {
	Event    string                           `json:"event"`
	Text     string                           `json:"text"`
	Workload struct{ Namespace, Name string } `json:"workload"`
	Changes  []struct{ Kind, Name, Type string }
	Info     string `json:"additionalInfo"`
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	var raw json.RawMessage
	var a receivedAlert
	err := json.NewDecoder(request.Body).Decode(&raw)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, string(raw))
	if err != nil {
		r.texts = append(r.texts, err.Error())
		return
	}
	r.alerts[a.Workload.Namespace] = append(r.alerts[a.Workload.Namespace], a)
}

// about returns the alerts about some workloads of one namespace.
func (r *receiver) about(workloads ...observe.Workload) (found []receivedAlert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.alerts[workloads[0].Namespace] {
		if slices.ContainsFunc(workloads, func(w observe.Workload) bool { return w.Name == a.Workload.Name }) {
			found = append(found, a)
		}
	}
	return found
}

// awaitPosted waits until what was due before is posted: two changes of the ConfigMap of another workload, one after the other, are.
// Unlike [fixture.Fixture.Settled] it needs no reload.
func awaitPosted(s *fixture.Fixture, sink *receiver) {
	s.Helper()
	s.ConfigMap("probe", fixture.Data{"key": "0"})
	probe := s.Deployment("probe", fixture.Uses{ConfigMaps: []string{"probe"}})
	s.AwaitAdopted(probe, "configmap/probe")
	for n := 1; n <= 2; n++ {
		s.SetConfigMap("probe", "key", strconv.Itoa(n))
		s.Await("the alert about the probe", func() error {
			if got := sink.about(probe); len(got) < n {
				return fmt.Errorf("there are %v", got)
			}
			return nil
		})
	}
	require.NoError(s, s.Watcher.Sync(s.Patiently()))
}

// With two replicas each reload is posted once, also when the leader changes, and with names only.
func reloadIsPostedOnce(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	sink := &receiver{alerts: map[string][]receivedAlert{}}
	server := httptest.NewServer(sink)
	t.Cleanup(server.Close)
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		Env: []string{"ALERT_ON_RELOAD=true", "ALERT_SINK=webhook", "ALERT_WEBHOOK_URL=" + server.URL + "/t0ken", "ALERT_ADDITIONAL_INFO=test cluster"},
	})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.Secret("db", fixture.Data{"key": "cl3ar-text"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}})
	s.AwaitKnown(w)
	awaitAlerts := func(n int) {
		s.Await(fmt.Sprintf("%d alerts", n), func() error {
			if got := sink.about(w); len(got) != n {
				return fmt.Errorf("there are %v", got)
			}
			return nil
		})
	}

	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "its configuration has changed")
	awaitAlerts(1)
	leader, err := in.Leader(s.Patiently())
	require.NoError(t, err)
	leader.Kill()
	s.SetSecret("db", "key", "cl3ar-text-2")
	s.AwaitChanges(w, 2, "its configuration has changed")
	awaitAlerts(2)
	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(w, 3, "its configuration has changed")
	awaitAlerts(3)
	s.Settled()
	awaitPosted(s, sink)

	requireAlerts(t, sink, w, "configmap/app modified", "secret/db modified", "configmap/app modified")
	s.Await("the metric of the alerts", func() error { // each is counted after the receiver has answered
		metrics, err := in.Metrics(s.Context())
		if err != nil {
			return err
		}
		assert.Zero(t, metrics.Sum("pod_reloader_alerts_total", "outcome", "failed"))
		if delivered := metrics.Sum("pod_reloader_alerts_total", "outcome", "delivered"); delivered < 2 {
			return fmt.Errorf("%v alerts are counted as delivered", delivered)
		}
		return nil
	})
}

// requireAlerts requires that the reloads of a workload are posted, each once and with names only.
func requireAlerts(t *testing.T, sink *receiver, w observe.Workload, texts ...string) {
	t.Helper()
	alerts := sink.about(w)
	require.Len(t, alerts, len(texts), "each reload is posted once")
	for n, a := range alerts {
		assert.Equal(t, "test cluster", a.Info)
		assert.Equal(t, fmt.Sprintf("test cluster : reloaded Deployment %s/%s: %s", w.Namespace, w.Name, texts[n]), a.Text)
		assert.Len(t, a.Changes, 1)
	}
	sink.mu.Lock()
	defer sink.mu.Unlock()
	for _, text := range sink.texts {
		assert.NotContains(t, text, "cl3ar-text", "no content of a Secret leaves the process")
	}
}

// With --webhook-url a change is posted, once for each workload, and restarts nothing. It stays known when the leader changes.
// One workload was stamped when it was created; the other one, which opts in later, never.
func changeIsPostedInsteadOfAReload(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	sink := &receiver{alerts: map[string][]receivedAlert{}}
	server := httptest.NewServer(sink)
	t.Cleanup(server.Close)
	in := installation.NewPromptInTurn(t, cp, installation.Options{Args: []string{"--webhook-url=" + server.URL}})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	web, late := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}}), s.Deployment("late", fixture.Uses{})
	s.Merge(&appsv1.Deployment{}, "late", `{"metadata":{"annotations":{"configmap.reloader.stakater.com/reload":"app"}}}`)
	s.AwaitAdopted(web, "configmap/app")
	s.AwaitAdopted(late, "configmap/app")
	require.Empty(t, fixture.TemplateAnnotations(s.Get(late)), "it was never stamped")
	for n := 1; n <= 3; n++ {
		if n == 2 {
			leader, err := in.Leader(s.Patiently())
			require.NoError(t, err)
			leader.Kill()
		}
		s.SetConfigMap("app", "key", fmt.Sprint("changed ", n))
		s.Await(fmt.Sprintf("notifications %d", n), func() error {
			if got := sink.about(web, late); len(got) != 2*n {
				return fmt.Errorf("there are %v", got)
			}
			return nil
		})
	}
	for _, w := range []observe.Workload{web, late} {
		s.AwaitEvent(w, "ChangeNotified", "configmap/app modified")
	}
	awaitPosted(s, sink)
	got := sink.about(web, late)
	require.Len(t, got, 6, "each change is posted once for each workload")
	for _, a := range got {
		assert.Equal(t, "change", a.Event)
		assert.Equal(t, fmt.Sprintf("not reloaded Deployment %s/%s: configmap/app modified", s.Namespace, a.Workload.Name), a.Text)
	}
	for _, w := range []observe.Workload{web, late} {
		s.AssertChanges(w, 0, "nothing is reloaded")
	}
	report, err := in.Why(s.Patiently(), "deployment/web", "-n", s.Namespace)
	require.NoError(t, err)
	assert.Contains(t, report, "nothing is due")
}
