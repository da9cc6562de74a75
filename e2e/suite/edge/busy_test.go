package edge_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// Writers of the specification raise the generation between the moment at which the loop reads the workload and that at which its request is
// stored.
func TestWorkloadThatIsWrittenAllTheTimeIsReloaded(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	s.AwaitKnown(w)
	var stopped atomic.Bool
	var writing sync.WaitGroup
	for writer := range 4 {
		writing.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				patch := fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, 1+n%100*4+writer)
				if err := s.Patch(t.Context(), fixture.Object(w), client.RawPatch(types.MergePatchType, []byte(patch))); !apierrors.IsConflict(err) {
					assert.NoError(t, err)
				}
			}
		})
	}
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "its configuration has changed, and so does the workload, all the time")
	stopped.Store(true)
	writing.Wait()
	s.Settled()
	s.RequireChanges(w, 1, "it restarts once")
}
