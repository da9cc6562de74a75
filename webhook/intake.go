package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

const (
	// maxBody is the size of the largest review that an admission.Webhook reads: two versions of an object, each at most
	// 3 MiB as the API server accepts them, and the rest.
	maxBody = 7 << 20
	// freeBody is what the first freeBodies requests may send without a turn: the usual review takes no lock.
	freeBody, freeBodies = 16 << 10, 256
	// smallBody is the size of a body that counts as a small one. A review of a workload mostly has some 10 KiB.
	smallBody = 512 << 10
	// smallBodies and largeBodies bound the bodies that are in memory, until they are answered, and the others those of one
	// address. An API server has some hundred small ones at a time. They do not wait for large ones.
	smallBodies          = 48 << 20
	smallBodiesOfACaller = smallBodies / 2
	largeBodies          = 2 * maxBody
	largeBodiesOfACaller = largeBodies * 3 / 4
	// largeBodiesOfANamespace are those whose reviews are decided or wait: an API server serves all namespaces from one address. It does not
	// bound the bodies that are being received, of which the namespace is not known.
	largeBodiesOfANamespace = largeBodiesOfACaller / 2
	// largeWaitingOfANamespace are those that wait for these. They leave a quarter of the budget of the address to other namespaces, unless one request is larger than that.
	largeWaitingOfANamespace = largeBodiesOfACaller / 4
	// waitingOfACaller bounds the requests of one address that wait for such a turn. An API server has at most 600 in flight
	// by default.
	waitingOfACaller = 1_000

	// reviewsInFlight bounds the reviews that are being decided, by their weight: a decoded object takes up to 25 bytes for each
	// unit of it. reviewsOfANamespace are those of one namespace, which may all wait for reads.
	reviewsInFlight     = 8 << 20
	reviewsOfANamespace = reviewsInFlight * 3 / 4
	// waitingOfANamespace bounds those of one namespace that wait, by their weight as well. Meanwhile their bodies count for the address of
	// an API server, which serves all namespaces: those of one namespace take half of it.
	waitingOfANamespace = smallBodiesOfACaller/2 - reviewsOfANamespace
	// leastReview is what a small review counts: decoding has costs of its own.
	leastReview = 4 << 10
	// objectsInFlight bounds what the reviews that are being decided can track: up to 300 bytes of memory for each object, however short its
	// name is. objectsOfANamespace are those of one namespace. Reviews that wait for this still count in reviewsInFlight.
	objectsInFlight     = 96 << 10
	objectsOfANamespace = objectsInFlight * 3 / 4
	// readsInFlight bounds what is read for them: up to 1 KiB of memory for each object. A review that reads nothing does not wait for those
	// that do, as long as there are objectsOfANamespace.
	readsInFlight     = 32 << 10
	readsOfANamespace = readsInFlight * 3 / 4
	// freeObjects are those of a review that leastReview covers. A review with no more, as nearly all are, takes no turn.
	freeObjects = 64
)

var (
	// errBusy says that others used up what a request needs until its deadline.
	errBusy = errors.New("too many requests at the same time")
	// errNoObject keeps the body from the YAML decoder that an admission.Webhook tries on what does not look like JSON: it
	// takes some hundred times the memory of its text.
	errNoObject = errors.New("the body is not a JSON object: want an AdmissionReview")
)

// intake bounds the memory of requests from all callers. An admission.Webhook bounds that of one body only.
type intake struct {
	free                  *atomic.Int64 // requests that read their free part
	small, large, reviews *fairlimit.Limit
	objects, reads        *fairlimit.Limit // of the reviews
	largeReviews          *fairlimit.Limit // by namespace
}

func newIntake() intake {
	return intake{
		free:    &atomic.Int64{},
		small:   fairlimit.NewBounded(smallBodies, smallBodiesOfACaller, waitingOfACaller),
		large:   fairlimit.NewBounded(largeBodies, largeBodiesOfACaller, waitingOfACaller),
		reviews: fairlimit.NewWeighted(reviewsInFlight, reviewsOfANamespace, waitingOfANamespace),
		objects: fairlimit.New(objectsInFlight, objectsOfANamespace),
		reads:   fairlimit.New(readsInFlight, readsOfANamespace),

		largeReviews: fairlimit.NewWeighted(largeBodies, largeBodiesOfANamespace, largeWaitingOfANamespace),
	}
}

// review waits until a review of a weight may be decided, whose body counts so much as a large one. Where too much of its namespace waits, or
// the review is too heavy for any time, the error comes at once.
func (i intake) review(ctx context.Context, namespace string, weight, large int) (release func(), err error) {
	if weight > reviewsOfANamespace {
		return nil, errTooLarge
	}
	received := func() {}
	if large > 0 {
		if received, err = i.largeReviews.Acquire(ctx, namespace, large); err != nil {
			return nil, fmt.Errorf("%w: %w", errBusy, err)
		}
	}
	decided, err := i.reviews.Acquire(ctx, namespace, max(weight, leastReview))
	if err != nil {
		received()
		return nil, fmt.Errorf("%w: %w", errBusy, err)
	}
	return func() { decided(); received() }, nil
}

// track waits until a review of a workload that can track so many objects may be decided.
func (i intake) track(ctx context.Context, namespace string, objects int) (release func(), err error) {
	return take(ctx, i.objects, namespace, objects)
}

// read waits until so many objects may be read for a review.
func (i intake) read(ctx context.Context, namespace string, objects int) (release func(), err error) {
	return take(ctx, i.reads, namespace, objects)
}

// take waits for objects under one of the limits. After an error, release does nothing.
func take(ctx context.Context, from *fairlimit.Limit, namespace string, objects int) (release func(), err error) {
	nothing := func() {}
	if objects <= freeObjects {
		return nothing, nil
	}
	release, err = from.Acquire(ctx, namespace, objects)
	if err != nil {
		return nothing, fmt.Errorf("%w: %w", errBusy, err)
	}
	return release, nil
}

// incoming is a request on its way through an admission.Webhook to the Handler. The package reads the body from it.
type incoming struct {
	request  *http.Request
	response http.ResponseWriter
	body     io.ReadCloser
	intake   intake
	arrived  time.Time
	// timeout is how long the decision may take from the arrival on.
	timeout time.Duration
	// cancel ends the context of the decision.
	cancel context.CancelFunc

	// size is what was read of the body, allowed what may be read until the next turn.
	size, allowed int
	// large is what the body counts as a large one.
	large int
	// release gives back what the body counts; nil while it counts nothing.
	release func()
	// busy is set if the body was not read because of others, decoded if the Handler was called.
	busy, decoded bool
}

// incomingKey is the key of the *incoming in the context of a request.
type incomingKey struct{}

// receive puts an incoming in the place of a request's body.
func (i intake) receive(w http.ResponseWriter, r *http.Request) (*incoming, *http.Request) {
	in := &incoming{response: w, body: r.Body, intake: i, arrived: time.Now(), cancel: func() {}}
	in.request = r.WithContext(context.WithValue(r.Context(), incomingKey{}, in))
	if r.Body != nil && r.Body != http.NoBody {
		in.request.Body = in
	}
	return in, in.request
}

// Read reads the body. Before it reads more than is accounted for, it waits for its turn.
func (in *incoming) Read(p []byte) (int, error) {
	if in.size == in.allowed {
		if err := in.advance(); err != nil {
			in.busy = true
			return 0, err
		}
	}
	n, err := in.body.Read(p[:min(len(p), in.allowed-in.size)])
	if in.size == 0 && (n == 0 && errors.Is(err, io.EOF) || n > 0 && p[0] != '{') {
		return 0, errNoObject
	}
	in.size += n
	return n, err
}

// advance waits until more of the body may be read. A body of unknown length counts as the largest of its class.
func (in *incoming) advance() error {
	length := int(min(in.request.ContentLength, maxBody))
	switch {
	case in.allowed == 0 && in.takeFree():
		return nil
	case in.allowed < smallBody && length < 0:
		return in.wait(in.intake.small, smallBody, smallBody)
	case in.allowed < smallBody && length <= smallBody:
		return in.wait(in.intake.small, max(length, freeBody), smallBody)
	case length < 0:
		length = maxBody
	}
	in.large = length
	return in.wait(in.intake.large, length, math.MaxInt)
}

// takeFree begins with the free part, where not too many others do.
func (in *incoming) takeFree() bool {
	free := in.intake.free
	if free.Add(1) > freeBodies {
		free.Add(-1)
		return false
	}
	in.allowed, in.release = freeBody, func() { free.Add(-1) }
	return true
}

// wait waits until a body of a weight may be read on, and gives back what it counted before. The body has to be there until the
// decision would be too late: others wait for what it counts.
func (in *incoming) wait(limit *fairlimit.Limit, weight, allowed int) error {
	deadline := in.arrived.Add(in.timeout)
	ctx, cancel := context.WithDeadline(in.request.Context(), deadline)
	defer cancel()
	release, err := limit.Acquire(ctx, fairlimit.CallerOf(in.request.RemoteAddr), weight)
	if err != nil {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	if in.release != nil {
		in.release()
	}
	in.allowed, in.release = allowed, release
	_ = http.NewResponseController(in.response).SetReadDeadline(deadline) // a server has one of its own besides
	return nil
}

// Close closes the body.
func (in *incoming) Close() error { return in.body.Close() }

// end gives back what the request took.
func (in *incoming) end() {
	in.cancel()
	if in.release != nil {
		in.release()
	}
}
