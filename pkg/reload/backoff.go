package reload

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// backoff says when to look at a workload again. What may pass soon (the API server restarts, the state moved on) is
// tried again within seconds; what somebody must mend first, ever more rarely. Each workload has its own pace.
type backoff struct {
	soon, rarely workqueue.TypedRateLimiter[Key]
}

// The paces, from the first to the longest wait.
const (
	firstSoon, longestSoon     = 25 * time.Millisecond, 3 * time.Second
	firstRarely, longestRarely = time.Second, 5 * time.Minute
)

func newBackoff() backoff {
	return backoff{
		soon:   workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstSoon, longestSoon),
		rarely: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRarely, longestRarely),
	}
}

// forget starts a workload's pace anew.
func (b backoff) forget(key Key) {
	b.soon.Forget(key)
	b.rarely.Forget(key)
}
