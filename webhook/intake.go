package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

const (
	// maxBody bounds a review: two versions of an object, each at most 3 MiB as the API server accepts them, and the rest.
	maxBody = 7 << 20
	// smallBody is what any caller may send at any time. A review of a workload mostly has some 10 KiB.
	smallBody = 512 << 10
	// largeBodies bounds the larger ones that are in memory, and largeBodiesOfACaller those of one address.
	largeBodies          = 2 * maxBody
	largeBodiesOfACaller = largeBodies * 3 / 4

	// reviewsInFlight bounds the reviews that are being decided, in bytes of their bodies: a decoded object takes up to 25
	// times its text. reviewsOfANamespace are those of one namespace, which may all wait for reads.
	reviewsInFlight     = 8 << 20
	reviewsOfANamespace = reviewsInFlight * 3 / 4
	// leastReview is what a small review counts: decoding has costs of its own.
	leastReview = 4 << 10
)

// errBusy says that others used up what a request needs until its deadline.
var errBusy = errors.New("too many large requests at the same time")

// intake bounds the memory of requests from all callers.
type intake struct {
	bodies, reviews *fairlimit.Limit
}

func newIntake() intake {
	return intake{
		bodies:  fairlimit.New(largeBodies, largeBodiesOfACaller),
		reviews: fairlimit.New(reviewsInFlight, reviewsOfANamespace),
	}
}

// review waits until a review of a size may be decoded and decided.
func (i intake) review(ctx context.Context, namespace string, size int) (release func(), err error) {
	release, err = i.reviews.Acquire(ctx, namespace, max(size, leastReview))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBusy, err)
	}
	return release, nil
}

// body is the body of a request that may be a review.
type body struct {
	data []byte
	// release is called when the data is not needed any more.
	release func()
}

// read returns the body of a request that may be a review.
func (i intake) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (body, *refused) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return body{}, &refused{http.StatusMethodNotAllowed, fmt.Errorf("method %s: send an AdmissionReview by POST", r.Method)}
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return body{}, &refused{http.StatusUnsupportedMediaType, errors.New("Content-Type: want application/json")}
	}
	read, err := i.readAll(ctx, w, r)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil && len(read.data) == 0:
		err = errors.New("the body is empty: want an AdmissionReview")
	case err == nil:
		return read, nil
	case errors.As(err, &tooLarge):
		return body{}, &refused{http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than %d bytes", maxBody)}
	case errors.Is(err, errBusy):
		return body{}, &refused{http.StatusServiceUnavailable, err}
	default:
		err = fmt.Errorf("read the body: %w", err)
	}
	return body{}, &refused{http.StatusBadRequest, err}
}

// readAll reads a body. Where it turns out to be a large one, it waits for its turn before it reads on.
func (i intake) readAll(ctx context.Context, w http.ResponseWriter, r *http.Request) (read body, err error) {
	source := http.MaxBytesReader(w, r.Body, maxBody)
	var buffer bytes.Buffer
	if n, err := buffer.ReadFrom(io.LimitReader(source, smallBody)); err != nil || n < smallBody {
		return body{buffer.Bytes(), func() {}}, err
	}
	size := maxBody
	if r.ContentLength > 0 {
		size = int(min(r.ContentLength, maxBody))
	}
	release, err := i.bodies.Acquire(ctx, callerOf(r), size)
	if err != nil {
		return body{}, fmt.Errorf("%w: %w", errBusy, err)
	}
	if _, err = buffer.ReadFrom(source); err != nil {
		release()
		return body{}, err
	}
	return body{buffer.Bytes(), release}, nil
}

// callerOf returns the address that a request comes from, without the port.
func callerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
