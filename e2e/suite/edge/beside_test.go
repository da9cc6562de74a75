package edge_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// touchEachWrite registers a mutating webhook that the API server calls after ours and that changes each write, so that ours is called
// again, while a user labels the workloads and releases another one. It returns what ends the user's writes and requires that none was
// rejected.
func touchEachWrite(s *fixture.Fixture, all []observe.Workload) (end func()) {
	s.Helper()
	calls := fixture.Webhook{Mutating: true, Patient: true, Answer: func(_ context.Context, request *admissionv1.AdmissionRequest) string {
		return `[{"op":"add","path":"/metadata/labels","value":{"touched":"` + string(request.UID)[:8] + `"}}]`
	}}.Register(s)
	released := s.Deployment("released", fixture.Uses{ConfigMaps: []string{"app"}})
	s.AwaitKnown(released)
	before := calls.Load()

	ctx, stop := context.WithCancel(s.Context())
	var writing sync.WaitGroup
	var outcomes []error
	writing.Go(func() {
		repeat(ctx, 100*time.Millisecond, func(n int) { //nolint:contextcheck // a write that has begun may end
			outcomes = append(outcomes,
				patched(s, all[n%len(all)], fmt.Sprintf(`{"metadata":{"annotations":{"example.org/written":"%d"}}}`, n)),
				patched(s, released, fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"release":"%d"}}}}}`, n)))
		})
	})
	return func() {
		stop()
		writing.Wait()
		for _, err := range outcomes {
			assert.NoError(s, err, "a write of a user is rejected")
		}
		assert.NotEmpty(s, outcomes, "the user has written")
		assert.Greater(s, calls.Load(), before+int64(len(outcomes)), "the other webhook took part in the reloads, too")
	}
}

// patched applies a merge patch to a workload.
func patched(s *fixture.Fixture, of observe.Workload, patch string) error {
	object := s.Manifest(of.Kind, of.Name, fixture.Uses{})
	return s.Patch(s.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// repeat calls do at each interval, with the number of the call, until the context ends.
func repeat(ctx context.Context, every time.Duration, do func(n int)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
			do(n)
		case <-ctx.Done():
			return
		}
	}
}
