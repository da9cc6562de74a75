package promise_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
)

// Updates of workloads that leave their pod template alone, or only forget what is ours.
func TestP2UpdatesOfWorkloadsRestartNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		kinds  []string
		// scales means that the number of pods changes; which ones go is the controller's choice.
		scales bool
		update func(s *fixture.Fixture, of observe.Workload, n int)
	}{
		"PutWithoutOurAnnotations": {
			reason: "a manifest that knows nothing of our annotations was applied again by PUT",
			kinds:  fixture.Kinds,
			update: func(s *fixture.Fixture, of observe.Workload, _ int) {
				require.NoError(s, s.Update(s.Context(), s.Manifest(of.Kind, of.Name, usesBoth())))
			},
		},
		"ScaleSubresource": {
			reason: "scaled, as a HorizontalPodAutoscaler does",
			kinds:  []string{"Deployment", "StatefulSet"},
			scales: true,
			update: func(s *fixture.Fixture, of observe.Workload, n int) {
				scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: int32(n%3 + 1)}}
				require.NoError(s, s.SubResource("scale").Update(s.Context(), s.Get(of), client.WithSubResourceBody(scale)))
			},
		},
		"Replicas": {
			reason: "scaled by kubectl",
			kinds:  []string{"Deployment", "StatefulSet"},
			scales: true,
			update: func(s *fixture.Fixture, of observe.Workload, n int) {
				s.MergeWorkload(of, fmt.Sprintf(`{"spec":{"replicas":%d}}`, n%3+1))
			},
		},
		"OtherSpec": {
			reason: "fields of the spec outside the template were changed",
			kinds:  []string{"Deployment", "DaemonSet"},
			update: func(s *fixture.Fixture, of observe.Workload, n int) {
				s.MergeWorkload(of, fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, n%2))
			},
		},
		"Suspend": {
			reason: "a CronJob was suspended and resumed",
			kinds:  []string{"CronJob"},
			update: func(s *fixture.Fixture, of observe.Workload, n int) {
				s.MergeWorkload(of, fmt.Sprintf(`{"spec":{"suspend":%t}}`, n%2 == 0))
			},
		},
		"LabelsAndAnnotations": {
			reason: "metadata of the workload was changed",
			kinds:  fixture.Kinds,
			update: func(s *fixture.Fixture, of observe.Workload, n int) {
				s.MergeWorkload(of, fmt.Sprintf(`{"metadata":{"labels":{"n":"%[1]d"},"annotations":{"n":"%[1]d"}}}`, n))
			},
		},
		"Status": {
			reason: "its status was written",
			kinds:  []string{"Deployment", "StatefulSet", "DaemonSet"},
			update: func(s *fixture.Fixture, of observe.Workload, n int) {
				patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Progressing","status":"True","reason":"Test","message":"%d"}]}}`, n)
				require.NoError(s, s.Client.Status().Patch(s.Context(), s.Get(of), client.RawPatch(types.MergePatchType, []byte(patch))))
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fixture.New(t, shared)
			s.ConfigMap("app", fixture.Data{"key": "1"})
			s.Secret("db", fixture.Data{"password": "1"})
			var workloads []observe.Workload
			for _, kind := range test.kinds {
				workloads = append(workloads, s.Workload(kind, "web", usesBoth()))
			}
			reloadOnce(s, workloads)
			ran := awaitPods(s, workloads)
			for _, w := range workloads {
				for n := range repetitions {
					test.update(s, w, n)
				}
			}
			s.AwaitExactly(1, "only the reload before: "+test.reason, workloads...)
			if !test.scales {
				assert.ElementsMatch(t, ran, podUIDs(s), "the same pods: %s", test.reason)
			}
		})
	}
}

// usesBoth depends on the ConfigMap "app" and the Secret "db".
func usesBoth() fixture.Uses {
	return fixture.Uses{ConfigMaps: []string{"app"}, Secrets: []string{"db"}, Replicas: 1}
}

// reloadOnce brings the workloads into the state in which most are: with all managed annotations, last-reload included.
func reloadOnce(s *fixture.Fixture, workloads []observe.Workload) {
	s.Helper()
	s.SetConfigMap("app", "key", "2")
	for _, w := range workloads {
		s.AwaitChanges(w, 1, "the content of configmap/app has changed")
		require.Contains(s, s.Get(w).GetAnnotations(), fixture.LastReload, "%s: the annotation of a reload", w)
	}
}

// The one exception that is asked for.
func TestP2EditedListsStampAtOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	s.ConfigMap("more", fixture.Data{"key": "1"})
	var w, other observe.Workload
	edit := func(of observe.Workload, list string) bool {
		return fixture.Promptly(func() {
			s.MergeWorkload(of, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fixture.ConfigMaps, list))
		})
	}
	require.True(t, poll.Repeat(t, attempts, fixture.LeftOut, func(n int) bool {
		w = s.Deployment(fmt.Sprintf("web-%d", n), fixture.Uses{ConfigMaps: []string{"app"}})
		other = s.Deployment(fmt.Sprintf("other-%d", n), fixture.Uses{ConfigMaps: []string{"app", "more"}})
		return edit(w, "app,more") && edit(other, " more , app,app ")
	}), "an attempt was conclusive")
	s.Settled()
	s.AssertChanges(w, 1, "its list was extended")
	s.AssertChanges(other, 0, "its list names the same objects as before")
	assert.Contains(t, s.Get(w).GetAnnotations()[fixture.ConfigRecord], "configmap/more=", "the new object is recorded")
}
