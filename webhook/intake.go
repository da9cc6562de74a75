package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

const (
	// maxBody is the size of the largest review that an admission.Webhook reads: two versions of an object, each at most
	// 3 MiB as the API server accepts them, and the rest.
	maxBody = 7 << 20
	// smallBody is what any caller may send at any time. A review of a workload mostly has some 10 KiB.
	smallBody = 512 << 10
	// largeBodies bounds the larger ones that are in memory, and largeBodiesOfACaller those of one address.
	largeBodies          = 2 * maxBody
	largeBodiesOfACaller = largeBodies * 3 / 4

	// reviewsInFlight bounds the reviews that are being decided, in bytes of their objects: a decoded object takes up to 25
	// times its text. reviewsOfANamespace are those of one namespace, which may all wait for reads.
	reviewsInFlight     = 8 << 20
	reviewsOfANamespace = reviewsInFlight * 3 / 4
	// leastReview is what a small review counts: decoding has costs of its own.
	leastReview = 4 << 10
)

var (
	// errBusy says that others used up what a request needs until its deadline.
	errBusy = errors.New("too many large requests at the same time")
	// errNoObject keeps the body from the YAML decoder that an admission.Webhook tries on what does not look like JSON: it
	// takes some hundred times the memory of its text.
	errNoObject = errors.New("the body is not a JSON object: want an AdmissionReview")
)

// intake bounds the memory of requests from all callers. An admission.Webhook bounds that of one body only.
type intake struct {
	bodies, reviews *fairlimit.Limit
}

func newIntake() intake {
	return intake{
		bodies:  fairlimit.New(largeBodies, largeBodiesOfACaller),
		reviews: fairlimit.New(reviewsInFlight, reviewsOfANamespace),
	}
}

// review waits until a review of a size may be decided.
func (i intake) review(ctx context.Context, namespace string, size int) (release func(), err error) {
	release, err = i.reviews.Acquire(ctx, namespace, max(size, leastReview))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBusy, err)
	}
	return release, nil
}

// incoming is a request on its way through an admission.Webhook to the Handler. The package reads the body from it.
type incoming struct {
	request *http.Request
	body    io.ReadCloser
	bodies  *fairlimit.Limit
	arrived time.Time
	// timeout is how long the decision may take from the arrival on.
	timeout time.Duration
	// cancel ends the context of the decision.
	cancel context.CancelFunc

	size int
	// release is set while the body counts as a large one.
	release func()
	// busy is set if the body was not read because of others, decoded if the Handler was called.
	busy, decoded bool
}

// incomingKey is the key of the *incoming in the context of a request.
type incomingKey struct{}

// receive puts an incoming in the place of a request's body.
func (i intake) receive(r *http.Request) (*incoming, *http.Request) {
	in := &incoming{body: r.Body, bodies: i.bodies, arrived: time.Now(), cancel: func() {}}
	in.request = r.WithContext(context.WithValue(r.Context(), incomingKey{}, in))
	if r.Body != nil && r.Body != http.NoBody {
		in.request.Body = in
	}
	return in, in.request
}

// Read reads the body. Where it turns out to be a large one, it waits for its turn before it reads on.
func (in *incoming) Read(p []byte) (int, error) {
	if in.release == nil {
		if in.size == smallBody {
			if err := in.wait(); err != nil {
				in.busy = true
				return 0, err
			}
		} else {
			p = p[:min(len(p), smallBody-in.size)]
		}
	}
	n, err := in.body.Read(p)
	if in.size == 0 && (n == 0 && errors.Is(err, io.EOF) || n > 0 && p[0] != '{') {
		return 0, errNoObject
	}
	in.size += n
	return n, err
}

// wait waits until a large body may be read on.
func (in *incoming) wait() (err error) {
	ctx, cancel := context.WithDeadline(in.request.Context(), in.arrived.Add(in.timeout))
	defer cancel()
	size := maxBody
	if in.request.ContentLength > 0 {
		size = int(min(in.request.ContentLength, maxBody))
	}
	if in.release, err = in.bodies.Acquire(ctx, callerOf(in.request), size); err != nil {
		return fmt.Errorf("%w: %w", errBusy, err)
	}
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

// callerOf returns the address that a request comes from, without the port.
func callerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
