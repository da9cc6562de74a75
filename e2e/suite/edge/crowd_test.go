package edge_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/controlplane"
	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/installation"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// longList returns a list of 30,000 names in 240,000 bytes. Annotations have 256 KiB in total.
func longList() string {
	var list strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&list, "c%06d,", i)
	}
	return list.String()
}

// One namespace has 16 workloads with the longest lists that there can be, and creates more of them, dry, in a loop. Reloads
// in another namespace stay prompt, and the memory and the reads of pod-reloader stay bounded.
func longestListsDelayNoOtherWorkload(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	in := installation.NewPromptInTurn(t, cp, installation.Options{
		Replicas: 1, LongLease: true, Args: []string{"--settle=100ms"},
	})
	big, small := fixture.New(t, in), fixture.New(t, in)
	small.ConfigMap("app", fixture.Data{"key": "1"})
	w := small.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	replica := in.Replicas()[0]
	idle, err := replica.ResidentMemory()
	require.NoError(t, err)

	list := longList()
	crowd := func(s *fixture.Fixture, name string) client.Object {
		return s.Manifest("Deployment", name, fixture.Uses{Annotations: map[string]string{fixture.ConfigMaps: list}})
	}
	user, heard := big.Warned()
	for n := range 16 {
		prompt := fixture.Promptly(func() { require.NoError(t, user.Create(t.Context(), crowd(user, fmt.Sprintf("crowd-%d", n)))) })
		if texts := strings.Join(heard.Take(), "\n"); prompt {
			assert.Contains(t, texts, "29000 config objects are not tracked")
		}
		big.AwaitEvent(observe.Workload{Kind: "Deployment", Namespace: big.Namespace, Name: fmt.Sprintf("crowd-%d", n)},
			"InvalidAnnotation", "29000 config objects are not tracked: a workload can track 1000")
	}
	requireFewReads(big, crowd(big, "once"))

	const reloads = 5
	changes := 0
	slowest := func() (slowest time.Duration) {
		for range reloads {
			changes++
			before := time.Now()
			small.SetConfigMap("app", "key", fmt.Sprintf("changed %d times", changes))
			small.AwaitChanges(w, changes, "the lists of another namespace hold it up")
			slowest = max(slowest, time.Since(before))
		}
		return slowest
	}
	alone := slowest()

	var running sync.WaitGroup
	var created atomic.Int64
	var stopped atomic.Bool
	first := make(chan error, 8)
	for n := range cap(first) {
		dryRun := func() error {
			err := big.Create(t.Context(), crowd(big, fmt.Sprintf("dry-%d", n)), client.DryRunAll)
			if err == nil {
				created.Add(1)
			}
			return err
		}
		running.Go(func() {
			first <- dryRun()
			for !stopped.Load() && t.Context().Err() == nil {
				_ = dryRun()
			}
		})
	}
	// The reloads begin while all senders are at work: the first dry run has passed, the others are under way.
	require.NoError(t, <-first)
	// The dry runs load the API server, too. A machine on which a single reload takes seconds shows less.
	limit, crowded := max(promptly, 5*alone), time.Duration(0)
	late := fixture.Steadily(t, in, func() error {
		crowded = slowest()
		return below(crowded, limit)
	})
	stopped.Store(true)
	running.Wait()

	peak, err := replica.PeakMemory()
	require.NoError(t, err)
	metrics, err := replica.Metrics(t.Context())
	require.NoError(t, err)
	t.Logf("the slowest of %d reloads took %s, beside %d dry runs %s; memory %d MB before, at most %d MB; %v decisions",
		reloads, alone, created.Load(), crowded, idle>>20, peak>>20, metrics.Sum("pod_reloader_webhook_decisions_total"))
	assert.NoError(t, late, "how long the slowest reload beside the lists of another namespace took")
	assert.Less(t, (peak-idle)>>20, int64(150), "MiB more than before")
	small.AwaitExactly(changes, "and once each", w)
	fixture.AssertNothingDenied(t, in)
}

// requireFewReads has the API server ask about the creation of a workload, dry, and counts the requests that this costs in its
// namespace, in which nothing else happens.
func requireFewReads(s *fixture.Fixture, workload client.Object) {
	s.Helper()
	const most = 4 // a list of each kind, and as many for the loop
	in := s.Installation
	audit := in.ControlPlane().Audit()
	since := func(mark controlplane.Mark) (controlplane.Requests, error) {
		requests, err := audit.Since(s.Patiently(), mark)
		return requests.By(in.Identity().User).In(s.Namespace), err
	}
	s.Await("the loop to be through with the workloads of the namespace, which wait for their turns", func() error {
		mark, err := audit.Mark()
		if err != nil {
			return err
		}
		if err := in.Quiet(s.Patiently()); err != nil {
			return err
		}
		requests, err := since(mark)
		if err == nil && len(requests) > 0 {
			err = fmt.Errorf("it sends requests: %v", requests.Count())
		}
		return err
	})
	mark, err := audit.Mark()
	require.NoError(s, err)
	prompt := fixture.Promptly(func() { require.NoError(s, s.Create(s.Context(), workload, client.DryRunAll)) })
	requests, err := since(mark)
	require.NoError(s, err)
	assert.LessOrEqual(s, len(requests), most, "requests for one dry run: %v", requests.Count())
	if prompt {
		assert.NotEmpty(s, requests, "the configuration is read live")
	}
}
