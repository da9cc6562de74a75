package keyring

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// The limit of how often the Secret is created again.
	creationsPerSecond = 0.1
	creationsAtOnce    = 20
	// contestReportInterval is the shortest time between two log lines about a contest.
	contestReportInterval = time.Hour
)

// contest limits how often the Secret is created again, since another controller may delete it each time. The goroutine of Start alone
// uses it.
type contest struct {
	limit    flowcontrol.RateLimiter
	reported time.Time
}

func newContest() contest {
	return contest{limit: flowcontrol.NewTokenBucketRateLimiter(creationsPerSecond, creationsAtOnce)}
}

// wait waits until the Secret may be created again, or the context ends.
func (c *contest) wait(ctx context.Context, now func() time.Time, log logr.Logger) {
	if c.limit.TryAccept() {
		return
	}
	if at := now(); c.reported.IsZero() || at.Sub(c.reported) >= contestReportInterval {
		c.reported = at
		log.Info("the Secret of the digest key is deleted each time that it is created; creating it again every 10 s")
	}
	_ = c.limit.Wait(ctx) // it fails only if the context ends
}
