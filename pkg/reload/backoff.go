package reload

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// backoff is when to look at a workload again. What may pass soon (the API server restarts, the state moved on) is
// tried again within seconds; what a user must mend first, ever more rarely, but missing rights every half minute: they are
// granted for all workloads at once. Each workload has its own pace.
type backoff struct {
	soon, refused, rarely workqueue.TypedRateLimiter[workload.Key]
	// conflicts is the pace of soon for requests that the webhook rejects because the configuration has moved on. They are
	// counted on their own: after some, a request asks for the live state.
	conflicts workqueue.TypedRateLimiter[workload.Key]
}

// The paces, from the first to the longest wait.
const (
	firstSoon, longestSoon     = 25 * time.Millisecond, 3 * time.Second
	firstRarely, longestRarely = time.Second, 5 * time.Minute
	longestRefused             = 30 * time.Second
)

func newBackoff() backoff {
	return backoff{
		soon:      workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstSoon, longestSoon),
		refused:   workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstRarely, longestRefused),
		rarely:    workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstRarely, longestRarely),
		conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstSoon, longestSoon),
	}
}

// when counts a failure and returns how long to wait.
func (b backoff) when(key workload.Key, f failure) time.Duration {
	switch {
	case f.conflict:
		return b.conflicts.When(key)
	case f.soon:
		return b.soon.When(key)
	case f.refused:
		return b.refused.When(key)
	default:
		return b.rarely.When(key)
	}
}

// insists reports whether requests of a workload were rejected so often, since the last success, that the next one asks for
// whatever the webhook reads live.
func (b backoff) insists(key workload.Key) bool { return b.conflicts.NumRequeues(key) >= insistent }

// insistent is that number. Under constant change the digest that is asked with is always an old one.
const insistent = 3

// lingers reports whether a failure that passes by itself has not passed, after some seconds.
func (b backoff) lingers(key workload.Key) bool {
	return max(b.soon.NumRequeues(key), b.conflicts.NumRequeues(key)) > persistent
}

// failing reports whether the last attempt at a workload failed.
func (b backoff) failing(key workload.Key) bool {
	return b.soon.NumRequeues(key)+b.refused.NumRequeues(key)+b.rarely.NumRequeues(key)+b.conflicts.NumRequeues(key) > 0
}

// forget starts a workload's pace anew.
func (b backoff) forget(key workload.Key) {
	b.soon.Forget(key)
	b.refused.Forget(key)
	b.rarely.Forget(key)
	b.conflicts.Forget(key)
}
