package sequence_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// manyObjects is how many a pattern matches. The webhook reads each of them when the workload is created.
const manyObjects = 60

// A pattern matches many ConfigMaps. A release creates another one, modifies one of them and then changes the workload.
func TestReleaseOfOneAmongManyObjectsRollsOutOnce(t *testing.T) {
	t.Parallel()
	steadily(t, releaseOfOneAmongManyObjects)
}

func releaseOfOneAmongManyObjects(s *fixture.Fixture) error {
	s.Helper()
	createMany(s, manyObjects)
	w := s.Deployment("web", fixture.Uses{Annotations: map[string]string{"configmap.reloader.stakater.com/reload": "many-.*"}})
	s.AwaitKnown(w)
	s.Settled()
	if err := changed(s, w, 0, "the objects were there before the workload"); err != nil {
		return err
	}

	s.ConfigMap("many-new", fixture.Data{"key": "1"})
	s.SetConfigMap("many-0007", "key", "2") // from now on, the release must come within the settle time
	s.MergeWorkload(w, `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	s.AwaitChanges(w, 1, "the release")
	s.Settled()
	if err := changed(s, w, 1, "the release is one rollout"); err != nil {
		return err
	}
	event := s.AwaitEvent(w, "Reloaded", "configmap/many-0007 modified")
	assert.Equal(s, 1, strings.Count(event.Note, "configmap/"), "one cause: %s", event.Note)

	s.SetConfigMap("many-new", "key", "2")
	s.AwaitChanges(w, 2, "the created object is tracked")
	s.AwaitEvent(w, "Reloaded", "configmap/many-new modified")
	s.Settled()
	return changed(s, w, 2, "once")
}

// createMany creates ConfigMaps with the names many-0000, many-0001 and so on.
func createMany(s *fixture.Fixture, count int) {
	s.Helper()
	const parallel = 8
	creating, ctx := errgroup.WithContext(s.Context())
	creating.SetLimit(parallel)
	for n := range count {
		creating.Go(func() error {
			meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: fmt.Sprintf("many-%04d", n)}
			return s.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: fixture.Data{"key": "1"}})
		})
	}
	require.NoError(s, creating.Wait())
}
