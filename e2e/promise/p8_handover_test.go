package promise_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/installation"
	"github.com/pod-reloader/pod-reloader/e2e/installation/scene"
	"github.com/pod-reloader/pod-reloader/e2e/observe"
)

// A leader that ends between stamps and their Events, by SIGKILL and by SIGTERM: its successor writes those that are
// missing, and none a second time.
func TestP8LeaderThatEndsLosesNoEvent(t *testing.T) {
	t.Parallel()
	cp := controlplane.New(t, controlplane.Options{Without: []string{controlplane.KWOK, controlplane.Scheduler}})
	in := installation.New(t, cp, installation.Options{
		Args: []string{"--settle=200ms", "--refractory=0s", "--shutdown-grace-period=200ms"},
	})
	s := scene.New(t, in)
	s.ConfigMap("app", scene.Data{"key": "0"})
	var workloads []observe.Workload
	for n := range 40 {
		workloads = append(workloads, s.Workload(kinds[n%len(kinds)], "app"+strconv.Itoa(n), scene.Uses{ConfigMaps: []string{"app"}}))
	}
	s.Settled()

	for n, end := range []func(*installation.Replica){
		(*installation.Replica).Kill,
		func(leader *installation.Replica) { require.NoError(t, leader.Stop(s.Patiently())) },
	} {
		round := n + 1
		leader, err := in.Leader(s.Patiently())
		require.NoError(t, err)
		s.SetConfigMap("app", "key", strconv.Itoa(round))
		s.AwaitChanges(workloads[0], round, "the first of many has its stamp")
		require.Less(t, reportedInAll(s), round*len(workloads), "the leader ends too late: every reload has its Event")
		end(leader)
		for _, w := range workloads {
			s.AwaitChanges(w, round, "its configuration has changed")
		}
		for _, w := range workloads {
			s.Await(fmt.Sprintf("an Event for each reload of %s", w), func() error {
				if events := reported(s, w); events < round {
					return fmt.Errorf("there are %d Events for %d reloads", events, round)
				}
				return nil
			})
		}
		require.NoError(t, leader.Start(s.Patiently()))
		s.Settled()
		for _, w := range workloads {
			s.AssertChanges(w, round, "once")
			assert.Equal(t, round, reported(s, w), "%s: one Event for each reload", w)
		}
	}
}

// reported counts the reloads of a workload that Events report.
func reported(s *scene.Scene, w observe.Workload) int {
	s.Helper()
	return reloads(s.Events(w))
}

// reportedInAll counts those of all workloads of a scene.
func reportedInAll(s *scene.Scene) int {
	s.Helper()
	all := &eventsv1.EventList{}
	require.NoError(s, s.List(s.Context(), all, client.InNamespace(s.Namespace)))
	return reloads(all.Items)
}

func reloads(events []eventsv1.Event) int {
	count := 0
	for _, event := range events {
		if event.Reason != "Reloaded" {
			continue
		}
		count++
		if event.Series != nil {
			count += int(event.Series.Count) - 1
		}
	}
	return count
}
