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

// manyObjects is how many a pattern matches. The webhook reads each of them when the workload is created. Their names are too long to be
// in the Record, as those of 1,000 objects are.
const manyObjects = 100

// A pattern matches many ConfigMaps, whose names do not fit in the Record. A release creates another one, modifies one of them and then
// changes the workload.
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
	require.Contains(s, s.Get(w).GetAnnotations()[fixture.ConfigRecord], ":*", "a Record without names")

	s.ConfigMap("many-new", fixture.Data{"key": "1"})
	s.SetConfigMap(manyName(7), "key", "2") // from now on, the release must come within the settle time
	s.MergeWorkload(w, `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	s.AwaitChanges(w, 1, "the release")
	s.Settled()
	if err := changed(s, w, 1, "the release is one rollout"); err != nil {
		return err
	}
	event := s.AwaitEvent(w, "Reloaded", "configmap/"+manyName(7)+" modified")
	assert.Equal(s, 1, strings.Count(event.Note, "configmap/"), "one cause: %s", event.Note)

	s.SetConfigMap("many-new", "key", "2")
	s.AwaitChanges(w, 2, "the created object is tracked")
	s.AwaitEvent(w, "Reloaded", "configmap/many-new modified")
	s.Settled()
	return changed(s, w, 2, "once")
}

// manyName is the name of the n-th object of a pattern.
func manyName(n int) string { return fmt.Sprintf("many-%04d-%s", n, strings.Repeat("x", 240)) }

// createMany creates some ConfigMaps that a pattern matches.
func createMany(s *fixture.Fixture, count int) {
	s.Helper()
	const parallel = 8
	creating, ctx := errgroup.WithContext(s.Context())
	creating.SetLimit(parallel)
	for n := range count {
		creating.Go(func() error {
			meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: manyName(n)}
			return s.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: fixture.Data{"key": "1"}})
		})
	}
	require.NoError(s, creating.Wait())
}
