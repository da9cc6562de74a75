package promise_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

func TestP4TenObjectsChangedInOneGoRestartAWorkloadOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	var names []string
	for n := range 5 {
		name := "c" + strconv.Itoa(n)
		s.ConfigMap(name, fixture.Data{"key": "1"})
		s.Secret(name, fixture.Data{"key": "1"})
		names = append(names, name)
	}
	workloads := s.EveryKind("web", fixture.Uses{ConfigMaps: names, Secrets: names})
	restartOnce(t, s, 3, workloads, names, func(w observe.Workload) {
		hint := s.Get(w).GetAnnotations()[fixture.LastReload]
		for _, name := range names {
			assert.Contains(t, hint, `"configmap/`+name+`"`, "%s: each cause is named", w)
			assert.Contains(t, hint, `"secret/`+name+`"`, "%s: each cause is named", w)
		}
	})
}

// restartOnce changes a ConfigMap and a Secret of each name in one go, some times, and requires one restart of each workload for that.
func restartOnce(t *testing.T, s *fixture.Fixture, times int, workloads []observe.Workload, names []string, also func(w observe.Workload)) {
	t.Helper()
	rounds := 0
	enough(t, times, func() int {
		before := map[observe.Workload]int{}
		for _, w := range workloads {
			before[w] = len(s.Watcher.Changes(w))
		}
		rounds++
		together := changeAll(s, names, strconv.Itoa(rounds))
		for _, w := range workloads {
			s.AwaitChanges(w, before[w]+1, "ten objects have changed")
		}
		s.Settled()
		if !together {
			return 0
		}
		for _, w := range workloads {
			s.RequireChanges(w, before[w]+1, "ten objects changed in one go are one restart")
			also(w)
		}
		return 1
	})
}

// A→B→A before the settle time ends.
func TestP4ContentThatComesBackWithinTheSettleTimeRestartsNothing(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	var workloads []observe.Workload
	tries := 0
	enough(t, 10, func() int {
		name := "app-" + strconv.Itoa(tries)
		tries++
		s.ConfigMap(name, fixture.Data{"key": "A"})
		w := s.Deployment(name, fixture.Uses{ConfigMaps: []string{name}, Replicas: 1})
		inTime := within(settle, func() {
			s.SetConfigMap(name, "key", "B")
			s.SetConfigMap(name, "key", "A")
		})
		if !inTime {
			return 0
		}
		workloads = append(workloads, w)
		return 1
	})
	s.AwaitExactly(0, "the pods run with the content that is there", workloads...)
}

// changeAll changes ConfigMaps and Secrets at the same time, and reports whether that took less than the settle time.
func changeAll(s *fixture.Fixture, names []string, value string) bool {
	s.Helper()
	return within(settle, func() {
		var writing sync.WaitGroup
		for _, name := range names {
			writing.Go(func() { s.SetConfigMap(name, "key", "changed "+value) })
			writing.Go(func() { s.SetSecret(name, "key", "changed "+value) })
		}
		writing.Wait()
	})
}

func refractoryPeriodBoundsHowOftenAWorkloadRestarts(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	const refractory, reloads = 3 * time.Second, 3
	in := installation.NewInTurn(t, cp, installation.Options{
		KeepRunning: true, LongLease: true, Args: []string{"--settle=0s", "--refractory=" + refractory.String()},
	})
	s := fixture.New(t, in)
	s.ConfigMap("app", fixture.Data{"key": "0"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})

	writing, stop := context.WithCancel(t.Context())
	defer stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	go func() {
		_, _ = s.Watcher.AwaitTemplateChanges(writing, w, reloads)
		stop()
	}()
	deadline := s.Patiently()
	for n := 1; writing.Err() == nil; n++ {
		s.SetConfigMap("app", "key", strconv.Itoa(n))
		select {
		case <-ticker.C:
		case <-writing.Done():
		case <-deadline.Done():
			require.Fail(t, "the workload is never restarted", "%v", s.Watcher.Changes(w))
		}
	}

	// What comes last, within the refractory period, is not lost: the pods end with it.
	s.SetConfigMap("app", "key", "last")
	last := fixture.TemplateAnnotations(s.Get(s.Deployment("fresh", fixture.Uses{ConfigMaps: []string{"app"}})))[fixture.ConfigHash]
	s.AwaitWorkload(w, "the stamp of the last content", func(o *unstructured.Unstructured) bool {
		return fixture.TemplateAnnotations(o)[fixture.ConfigHash] == last
	})
	require.NoError(t, s.Watcher.Sync(s.Patiently()))
	requireApart(s, w, refractory)
}

// requireApart requires that each restart of a workload is in its last-reload annotation, and a period after the one before it. The
// gate goes by the same times.
func requireApart(s *fixture.Fixture, w observe.Workload, period time.Duration) {
	s.Helper()
	var reload lastReload
	text := s.Get(w).GetAnnotations()[fixture.LastReload]
	require.NoError(s, json.Unmarshal([]byte(text), &reload))
	times := []time.Time{reload.Time}
	for _, before := range reload.Before {
		times = append(times, before.Time)
	}
	s.RequireChanges(w, len(times), "the annotation has each of them: "+text)
	for n := range len(times) - 1 {
		assert.GreaterOrEqual(s, times[n].Sub(times[n+1]), period, "a restart is too early after the one before it: %s", text)
	}
}
