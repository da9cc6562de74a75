package sequence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
	"github.com/pod-reloader/pod-reloader/e2e/kit/poll"
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

	var created string
	var err error
	require.True(s, poll.Repeat(s, 10, "the release came after the settle time, or after the adoption", func(n int) (inTime bool) {
		created = fmt.Sprintf("many-new-%d", n)
		inTime, err = releaseWithOne(s, w, n, created)
		return inTime
	}), "an attempt was conclusive")
	if err != nil {
		return err
	}
	before := len(s.Watcher.Changes(w))
	s.SetConfigMap(created, "key", "2")
	s.AwaitChanges(w, before+1, "the created object is tracked")
	s.AwaitEvent(w, "Reloaded", "configmap/"+created+" modified")
	s.Settled()
	return changed(s, w, before+1, "once")
}

// releaseWithOne changes the n-th object, creates another one and then changes the workload, and reports whether all came within the
// settle time, and before the loop adopted the created object.
func releaseWithOne(s *fixture.Fixture, w observe.Workload, n int, created string) (inTime bool, err error) {
	s.Helper()
	before, stored := len(s.Watcher.Changes(w)), s.Get(w)
	began := time.Now()
	s.SetConfigMap(manyName(n), "key", "2")
	s.ConfigMap(created, fixture.Data{"key": "1"})
	released := fmt.Sprintf(`"spec":{"template":{"metadata":{"labels":{"release":"%d"}}}}`, n+2)
	unadopted := s.Patch(s.Context(), stored.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"resourceVersion":"`+stored.GetResourceVersion()+`"},`+released+`}`)))
	if apierrors.IsConflict(unadopted) {
		s.Settled()
		return false, nil
	}
	require.NoError(s, unadopted)
	inTime = time.Since(began) < settle
	s.AwaitChanges(w, before+1, "the release")
	s.Settled()
	if !inTime {
		return false, nil
	}
	event := s.AwaitEvent(w, "Reloaded", "configmap/"+manyName(n)+" modified")
	assert.Equal(s, 1, strings.Count(event.Note, "configmap/"), "one cause: %s", event.Note)
	return true, changed(s, w, before+1, "the release is one rollout")
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
