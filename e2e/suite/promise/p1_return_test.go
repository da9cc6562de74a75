package promise_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

func TestP1StampedContentThatReturnsAfterAnAdoptionRestartsOnce(t *testing.T) {
	t.Parallel()
	stampedContentReturns(fixture.New(t, shared), 1)
}

// stampedContentReturns has a content stamped, another one adopted without a restart, and the first one return: the pods have to be
// replaced although the hash of the template stays. The two contents and the return are the same with the webhook and in direct mode.
func stampedContentReturns(s *fixture.Fixture, replicas int) {
	s.Helper()
	const selects = "configmap." + reloader + "reload"
	s.ConfigMap("back", fixture.Data{"key": "first"})
	var workloads []observe.Workload
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		w := s.Workload(kind, "back", fixture.Uses{ConfigMaps: []string{"back"}, Annotations: asks(selects, "back.*"), Replicas: replicas})
		s.AwaitAdopted(w, "configmap/back")
		workloads = append(workloads, w)
	}
	changesTo := func(content string, n int, why string) {
		s.Helper()
		s.SetConfigMap("back", "key", content)
		s.AwaitExactly(n, why, workloads...)
	}
	changesTo("stamped", 1, "a change of the content")
	hashes := map[observe.Workload]string{}
	for _, w := range workloads {
		hashes[w] = fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]
		require.NotEmpty(s, hashes[w])
		s.MergeWorkload(w, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}}}`, selects, fixture.ConfigRecord))
	}
	changesTo("adopted", 1, "nothing asks for reloads")
	for _, w := range workloads {
		s.MergeWorkload(w, fmt.Sprintf(`{"metadata":{"annotations":{%q:"back.*"}}}`, selects))
		s.AwaitAdopted(w, "configmap/back")
	}
	changesTo("adopted", 1, "opting in again adopts what is there")

	changesTo("stamped", 2, "the stamped content is back: one restart")
	restarts := map[observe.Workload]string{}
	for _, w := range workloads {
		template := fixture.TemplateAnnotations(s.Get(w))
		restarts[w] = template[fixture.ConfigRestart]
		assert.Equal(s, hashes[w], template[fixture.ConfigHash], "%s: its content has this hash", w)
		assert.NotEmpty(s, template[fixture.ConfigRestart], "%s: with the hash alone it would be the same template", w)
	}
	s.Await("new pods", func() error { return podsRestarted(s, replicas*len(workloads)) })
	changesTo("next", 3, "the next change")
	for _, w := range workloads {
		assert.Equal(s, restarts[w], fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigRestart], "%s: it stays when the hash changes", w)
	}
}

// podsRestarted returns an error unless there are n pods, all of a template with config-restart.
func podsRestarted(s *fixture.Fixture, n int) error {
	pods := &corev1.PodList{}
	if err := s.List(s.Context(), pods, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	restarted := 0
	for _, pod := range pods.Items {
		if pod.Annotations[fixture.ConfigRestart] != "" {
			restarted++
		}
	}
	if len(pods.Items) != n || restarted != n {
		return fmt.Errorf("%d of %d pods have the restarted template", restarted, len(pods.Items))
	}
	return nil
}
