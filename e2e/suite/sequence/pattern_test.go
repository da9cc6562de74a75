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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// manyObjects is so many that the Record of a workload has no names.
const manyObjects = 400

// A pattern matches 400 ConfigMaps. A release creates another one, modifies one of them and then changes the workload.
func TestReleaseOfOneAmongManyObjectsRollsOutOnce(t *testing.T) {
	t.Parallel()
	steadily(t, releaseOfOneAmongManyObjects)
}

func releaseOfOneAmongManyObjects(s *fixture.Fixture) error {
	s.Helper()
	createMany(s, manyObjects, func(meta metav1.ObjectMeta) client.Object {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: fixture.Data{"key": "1"}}
	})
	w := s.Deployment("web", fixture.Uses{Annotations: map[string]string{"configmap.reloader.stakater.com/reload": "many-.*"}})
	s.AwaitKnown(w)
	s.Settled()
	if err := changed(s, w, 0, "the objects were there before the workload"); err != nil {
		return err
	}
	require.Contains(s, s.Get(w).GetAnnotations()[fixture.ConfigRecord], ":*", "the Record has no names")

	s.ConfigMap("many-new", fixture.Data{"key": "1"})
	s.SetConfigMap("many-0007", "key", "2") // from now on, the release must come within the settle time
	merge(s, w, `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
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

// thousands is more objects than a workload can track.
const thousands = 2000

// A pattern matches 2,000 Secrets. The first thousand are tracked, and an Event reports the others.
func TestPatternThatMatchesThousandsOfSecrets(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	createMany(s, thousands, func(meta metav1.ObjectMeta) client.Object {
		return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte("1")}}
	})
	w := s.Deployment("web", fixture.Uses{Annotations: map[string]string{"secret.reloader.stakater.com/reload": "many-.*"}})
	s.AwaitKnown(w)
	s.AwaitEvent(w, "InvalidAnnotation", "1000 config objects are not tracked: a workload can track 1000")
	s.Settled()
	s.RequireChanges(w, 0, "the objects were there before the workload")
	s.SetSecret("many-0999", "key", "2")
	s.AwaitChanges(w, 1, "the last tracked object has changed")
	s.AwaitEvent(w, "Reloaded", "secret/many-0999 modified")
	s.SetSecret("many-1000", "key", "2")
	s.Settled()
	s.RequireChanges(w, 1, "the first object that is not tracked has changed")
}

// createMany creates objects with the names many-0000, many-0001 and so on.
func createMany(s *fixture.Fixture, count int, object func(metav1.ObjectMeta) client.Object) {
	s.Helper()
	const parallel = 8
	creating, ctx := errgroup.WithContext(s.Context())
	creating.SetLimit(parallel)
	for n := range count {
		creating.Go(func() error {
			return s.Create(ctx, object(metav1.ObjectMeta{Namespace: s.Namespace, Name: fmt.Sprintf("many-%04d", n)}))
		})
	}
	require.NoError(s, creating.Wait())
}
