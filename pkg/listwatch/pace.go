package listwatch

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
)

const (
	// The pause after a failure doubles from the shortest to the longest, and is lengthened by up to half at random. It is short, because
	// until it is over changes go unseen, and there are few watches.
	shortestPause, longestPause = 200 * time.Millisecond, 10 * time.Second
	// hopelessPause is the longest one while only a change of permissions, of definitions or of a proxy ends the failure.
	hopelessPause = 20 * time.Second
	jitter        = 0.5
	// steady is how long a watch has worked for the pauses to begin with the shortest again.
	steady = time.Minute
)

func backoff() wait.Backoff {
	return wait.Backoff{Duration: shortestPause, Cap: longestPause, Steps: 8, Factor: 2, Jitter: jitter}
}

// Pause returns the waits between attempts at something that fails. Each minute they begin with the shortest again.
func Pause() wait.DelayFunc { return backoff().DelayWithReset(clock.RealClock{}, time.Minute) }

// SlowBackoff has the longer waits between attempts at what a missing permission or kind may prevent for as long as the program runs.
func SlowBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second, Jitter: 0.1}
}

// Sleep waits. It is false when the context ends.
func Sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// pace has the pauses between the attempts to list and watch.
type pace struct {
	last time.Duration
	// hopeless is since when each attempt has failed in a way that may last.
	hopeless time.Time
}

// after returns the pause after an attempt. It has worked if the watch did for a while.
func (p *pace) after(worked, hopeless bool) time.Duration {
	if worked {
		*p = pace{}
	}
	longest := longestPause
	if Lasts(&p.hopeless, hopeless) {
		longest = hopelessPause
	}
	p.last = min(max(2*p.last, shortestPause), longest)
	return wait.Jitter(p.last, jitter)
}

// Lasts reports whether a condition that holds at each failure while an API server starts, such as a refusal, holds for longer than that.
// It keeps since when the condition holds.
func Lasts(since *time.Time, holds bool) bool {
	switch {
	case !holds:
		*since = time.Time{}
	case since.IsZero():
		*since = time.Now()
	}
	return holds && !apianswer.MayBeStart(time.Since(*since))
}

// isHopeless reports whether a failure can last for as long as the program runs: a permission or a kind is missing, or the credentials are
// not accepted.
func isHopeless(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}
