package state

import (
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Pace is how soon an attempt that failed is repeated.
type Pace int

// The paces.
const (
	// NeedsUser is for what a user must mend first.
	NeedsUser Pace = iota
	// Refused is for missing permissions, which are granted for all workloads at once.
	Refused
	// Soon is for what may pass by itself.
	Soon
	// Conflict is for requests that the webhook rejects because the configuration has moved on. They are counted on their own:
	// after some, a request asks for the live state.
	Conflict
	// Overtaken is for requests before which another writer has changed the workload. They are counted on their own: after some, a request
	// counts for each generation.
	Overtaken
)

// Backoff is when to look at a workload again. What may pass soon (the API server restarts, the state moved on) is
// tried again within seconds; what a user must mend first, ever more rarely, but missing permissions every half minute: they are
// granted for all workloads at once. Each workload has its own pace.
type Backoff struct {
	soon, refused, rarely, conflicts, overtaken workqueue.TypedRateLimiter[workload.Key]
}

// The paces, from the first to the longest wait.
const (
	firstSoon, longestSoon     = 25 * time.Millisecond, 3 * time.Second
	firstRarely, longestRarely = time.Second, 5 * time.Minute
	longestRefused             = 30 * time.Second
)

// NewBackoff returns one that has counted nothing.
func NewBackoff() Backoff {
	return Backoff{
		soon:      workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstSoon, longestSoon),
		refused:   workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstRarely, longestRefused),
		rarely:    workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstRarely, longestRarely),
		conflicts: workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstSoon, longestSoon),
		overtaken: workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Key](firstSoon, longestSoon),
	}
}

// When counts a failure and returns how long to wait.
func (b Backoff) When(key workload.Key, pace Pace) time.Duration {
	switch pace {
	case Conflict:
		return b.conflicts.When(key)
	case Overtaken:
		return b.overtaken.When(key)
	case Soon:
		return b.soon.When(key)
	case Refused:
		return b.refused.When(key)
	default:
		return b.rarely.When(key)
	}
}

// Exceeds reports whether requests of a workload were rejected so often, since the last success, that the next one asks for
// whatever the webhook reads live.
func (b Backoff) Exceeds(key workload.Key, after ConflictLimit) bool {
	conflicts := b.conflicts.NumRequeues(key)
	return conflicts >= int(after) && conflicts >= b.overtaken.NumRequeues(key)
}

// IsOvertaken reports whether another writer has changed a workload before so many requests, since the last success, that the next one counts
// for each generation. It takes 200 ms. Where the configuration changes all the time as well, what has failed more often decides: either kind
// of request has its turn.
func (b Backoff) IsOvertaken(key workload.Key) bool {
	overtaken := b.overtaken.NumRequeues(key)
	return overtaken >= int(FewConflicts) && overtaken > b.conflicts.NumRequeues(key)
}

// ConflictLimit is after how many conflicts in a row a request asks for the live state.
type ConflictLimit int

const (
	// FewConflicts takes 200 ms. Under constant change the digest that is asked with is always an old one.
	FewConflicts ConflictLimit = 3
	// SomeConflicts takes 3 s: a conflict may have another reason than a change.
	SomeConflicts ConflictLimit = 7
	// ManyConflicts takes 15 s, in which another replica can read what it does not know yet.
	ManyConflicts ConflictLimit = 11
)

// HasFailedLong reports whether a failure that passes by itself has not passed, after some seconds.
func (b Backoff) HasFailedLong(key workload.Key) bool {
	return max(b.soon.NumRequeues(key), b.conflicts.NumRequeues(key), b.overtaken.NumRequeues(key)) > Persistent
}

// HasFailedRepeatedly reports whether what should pass by itself has failed again and again, for some seconds.
func (b Backoff) HasFailedRepeatedly(key workload.Key) bool {
	return b.soon.NumRequeues(key) >= Persistent
}

// Persistent is how often that is.
const Persistent = 8

// Failing reports whether the last attempt at a workload failed.
func (b Backoff) Failing(key workload.Key) bool {
	return slices.ContainsFunc(b.all(), func(of workqueue.TypedRateLimiter[workload.Key]) bool { return of.NumRequeues(key) > 0 })
}

// Forget starts a workload's pace again.
func (b Backoff) Forget(key workload.Key) {
	for _, of := range b.all() {
		of.Forget(key)
	}
}

func (b Backoff) all() []workqueue.TypedRateLimiter[workload.Key] {
	return []workqueue.TypedRateLimiter[workload.Key]{b.soon, b.refused, b.rarely, b.conflicts, b.overtaken}
}
