package edge_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// Writers of the specification raise the generation between the moment at which the loop reads the workload and that at which its request is
// stored. The pause of a Deployment begins with that request, and ends while the writers go on.
func TestWorkloadThatIsWrittenAllTheTimeIsReloaded(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "1"})
	web := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	pausing := s.Deployment("pausing", fixture.Uses{ConfigMaps: []string{"app"}, Annotations: map[string]string{
		"deployment." + fixture.Reloader + "pause-period": "2s",
	}})
	s.AwaitKnown(web)
	s.AwaitKnown(pausing)
	var stopped atomic.Bool
	var writing sync.WaitGroup
	stop := func() {
		stopped.Store(true)
		writing.Wait()
	}
	defer stop()
	for writer := range 4 {
		writing.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				patch := fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, 1+n%100*4+writer)
				for _, w := range []observe.Workload{web, pausing} {
					if err := s.Patch(t.Context(), fixture.Object(w), client.RawPatch(types.MergePatchType, []byte(patch))); !apierrors.IsConflict(err) {
						assert.NoError(t, err)
					}
				}
			}
		})
	}
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(web, 1, "its configuration has changed, and so does the workload, all the time")
	s.AwaitChanges(pausing, 1, "it is paused at the same time")
	s.AwaitWorkload(pausing, "the end of the pause", func(o *unstructured.Unstructured) bool {
		_, since := o.GetAnnotations()["deployment."+fixture.Reloader+"paused-at"]
		return !since
	})
	s.AwaitEvent(pausing, "Resumed", "roll out")
	stop()
	s.Settled()
	s.RequireChanges(web, 1, "it restarts once")
	s.RequireChanges(pausing, 1, "it restarts once")
}
