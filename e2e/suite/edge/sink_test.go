package edge_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// queued is how many alerts wait at most, as the documentation says.
const queued = 1024

// brokenSink is a receiver of alerts that answers each one with 500, or none at all.
type brokenSink struct {
	*httptest.Server
	// release ends the requests that are not answered.
	release chan struct{}

	mu sync.Mutex
	// posts counts the requests for each alert: the body of an alert has the name of the workload and the time of its reload.
	posts map[string]int
}

func newBrokenSink(t *testing.T, hangs bool) *brokenSink {
	t.Helper()
	sink := &brokenSink{posts: map[string]int{}, release: make(chan struct{})}
	if !hangs {
		close(sink.release)
	}
	sink.Server = httptest.NewServer(sink)
	t.Cleanup(func() {
		if hangs {
			close(sink.release)
		}
		sink.Close()
	})
	return sink
}

func (b *brokenSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mu.Lock()
	b.posts[string(body)]++
	b.mu.Unlock()
	<-b.release
	w.WriteHeader(http.StatusInternalServerError)
}

// alerts is how many different ones were posted.
func (b *brokenSink) alerts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.posts)
}

// attempts are how often each alert about a workload of a namespace was posted.
func (b *brokenSink) attempts(namespace string) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	attempts := maps.Clone(b.posts)
	maps.DeleteFunc(attempts, func(alert string, _ int) bool { return !strings.Contains(alert, namespace) })
	return attempts
}

// options are those of an installation that posts its alerts there.
func (b *brokenSink) options() installation.Options {
	return installation.Options{LongLease: true, Env: []string{"ALERT_ON_RELOAD=true", "ALERT_WEBHOOK_URL=" + b.URL}}
}

// A sink accepts each alert and answers none before the test ends. There are more reloads than alerts can wait: each workload is
// reloaded for every change, also by the next leader. Replicas end in time after SIGTERM.
func reloadDespiteSinkThatHangs(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	sink := newBrokenSink(t, true)
	in := installation.NewPromptInTurn(t, cp, sink.options())
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "0"})
	const rounds = 11
	workloads := make([]observe.Workload, queued/rounds+10) // more than the queue has, for those that are posted
	for n := range workloads {
		workloads[n] = s.Workload("CronJob", fmt.Sprint("report-", n), fixture.Uses{ConfigMaps: []string{"app"}})
	}
	change := func(n int, why string) {
		s.SetConfigMap("app", "key", fmt.Sprint(n))
		for _, w := range workloads {
			s.AwaitChanges(w, n, why)
		}
	}
	for n := 1; n <= rounds; n++ {
		change(n, "the sink holds up the reload")
	}
	s.Await("the alerts to wait or to be dropped", func() error { return sink.accounts(s, in, rounds*len(workloads)) })

	leader, err := in.Leader(s.Patiently())
	require.NoError(t, err)
	require.NoError(t, in.RemoveReplica(s.Patiently(), leader), "the sink holds up the end of the process")
	assert.Zero(t, leader.ExitCode())
	posted := sink.alerts()
	change(rounds+1, "the sink holds up the reload of the next leader")
	s.Await("an alert of the next leader", func() error {
		if sink.alerts() == posted {
			return fmt.Errorf("the sink has got %d alerts as before", posted)
		}
		return nil
	})
	s.AwaitExactly(rounds+1, "once for each change", workloads...)
	require.NoError(t, in.StopAll(s.Patiently()))
	for _, replica := range in.Replicas() {
		assert.Zero(t, replica.ExitCode(), replica.Name())
	}
}

// accounts returns nil if there were at least n reloads, and the alert about each one is at the sink, waits, or was counted as dropped.
func (b *brokenSink) accounts(s *fixture.Fixture, in *installation.Installation, n int) error {
	metrics, err := in.Metrics(s.Context())
	if err != nil {
		return err
	}
	reloads, waiting := int(metrics.Sum("pod_reloader_reloads_total")), int(metrics.Sum("pod_reloader_pending_alerts"))
	dropped, posted := int(metrics.Sum("pod_reloader_alerts_total", "outcome", "overflow")), b.alerts()
	assert.LessOrEqual(s, waiting, queued)
	assert.Zero(s, metrics.Sum("pod_reloader_alerts_total", "outcome", "delivered"))
	if reloads < n || dropped == 0 || posted+waiting+dropped != reloads {
		return fmt.Errorf("of %d alerts, %d were posted, %d wait and %d were dropped", reloads, posted, waiting, dropped)
	}
	return nil
}

// A sink answers each alert with 500. Alerts are posted again, dropped in the end, and counted; workloads are reloaded as ever.
func reloadDespiteSinkThatFails(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	sink := newBrokenSink(t, false)
	in := installation.NewPromptInTurn(t, cp, sink.options())
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "0"})
	workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: []string{"app"}})
	const rounds = 2
	for n := 1; n <= rounds; n++ {
		s.SetConfigMap("app", "key", fmt.Sprint(n))
		for _, w := range workloads {
			s.AwaitChanges(w, n, "its configuration has changed")
		}
	}
	alerts := rounds * len(workloads)
	s.Await("the failed alerts", func() error {
		metrics, err := in.Metrics(s.Context())
		if err != nil {
			return err
		}
		assert.Zero(t, metrics.Sum("pod_reloader_alerts_total", "outcome", "delivered"))
		if failed := metrics.Sum("pod_reloader_alerts_total", "outcome", "failed"); int(failed) < alerts {
			return fmt.Errorf("%v alerts are counted as failed", failed)
		}
		return nil
	})
	attempts := sink.attempts(s.Namespace)
	assert.Len(t, attempts, alerts)
	for alert, n := range attempts {
		assert.Equal(t, 4, n, "attempts for %s", alert)
	}
	s.AwaitExactly(rounds, "once for each change", workloads...)
}
