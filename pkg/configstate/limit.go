package configstate

import (
	"context"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/share"
	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/zeroing"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

// The live reads in flight are bounded by the connections that the HTTP client keeps idle: with more, connections would be
// opened to be closed again, which costs either side more than the read. Watches do not count.
//
// The webhook and the loop have half of them each, so that neither waits for the other: the webhook has a deadline of 2 s,
// and the loop must make progress under any number of admission requests. Of a half, one namespace can have three quarters,
// so that reads of one namespace that hang hold up no other. Those of two at the same time hold up the rest of their half, for up
// to readLimit; then the others have their turns. With a smaller share, a workload with some hundred objects would exceed the
// deadline of the webhook where the API server is slow.
const (
	readsInFlight     = zeroing.IdleConnections / 2
	readsOfANamespace = readsInFlight * 3 / 4
)

// A response of more than 64 KiB waits for its turn once more before it is read on: an object of 1.5 MiB takes up to four
// times that much memory while its digest is computed. The webhook and the loop have so many each, as above.
const (
	largeInFlight     = 4
	largeOfANamespace = largeInFlight * 3 / 4
)

func newLarge() *fairlimit.Limit { return fairlimit.New(largeInFlight, largeOfANamespace) }

// lanes are the live reads of one part of the program.
type lanes struct {
	// client reads the objects.
	client  *client
	objects share.Group[objectKey, digest.State]
	lists   share.Group[scopeKey, map[string]listed]
	// statuses has the reads of pod statuses, by namespace.
	statuses share.Group[string, podStatuses]
}

// newLanes returns lanes whose reads a Limit admits. One read is up to two requests, one after the other.
func newLanes(c *client, limit *fairlimit.Limit) *lanes {
	admit := func(ctx context.Context, namespace string) (func(), error) { return limit.Acquire(ctx, namespace, 1) }
	l := &lanes{client: c}
	l.objects.Limit, l.lists.Limit, l.statuses.Limit = readLimit, readLimit, readLimit
	l.objects.Admit = func(ctx context.Context, k objectKey) (func(), error) { return admit(ctx, k.namespace) }
	l.lists.Admit = func(ctx context.Context, k scopeKey) (func(), error) { return admit(ctx, k.namespace) }
	l.statuses.Admit = admit
	return l
}

// queues are the lanes of all parts of the program.
type queues struct {
	admitted *lanes // reads of the webhook
	loop     *lanes // reads of the loop
	fills    *lanes // reads of the loop that may come out of the API server's cache
	limits   []*fairlimit.Limit
}

// newQueues returns the lanes of a client of the loop.
func newQueues(ofLoop *client) queues {
	ofWebhook := *ofLoop
	ofWebhook.large = newLarge()
	webhook, loop := fairlimit.New(readsInFlight, readsOfANamespace), fairlimit.New(readsInFlight, readsOfANamespace)
	return queues{
		admitted: newLanes(&ofWebhook, webhook), loop: newLanes(ofLoop, loop), fills: newLanes(ofLoop, loop),
		limits: []*fairlimit.Limit{webhook, loop, ofWebhook.large, ofLoop.large},
	}
}

// waiting returns how many reads wait for their turns.
func (q queues) waiting() int {
	n := 0
	for _, limit := range q.limits {
		n += limit.Waiting()
	}
	return n
}
