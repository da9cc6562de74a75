package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// largestBody is how many bytes a request body may have, as in kube-apiserver.
	largestBody = 3 << 20
	// longestRequest is how long a write may take, as in kube-apiserver.
	longestRequest = 34 * time.Second
)

// request is one request under way.
type request struct {
	route
	server *Server
	ctx    context.Context
	http   *http.Request
	query  url.Values
	call   *world.Call
	fate   Fate
	media  media
	// err is why the request cannot be served; it is reported after the gate.
	err error
	// deletion has the options of a DELETE.
	deletion metav1.DeleteOptions
	// warnings go with the answer; webhook is the one that made the request fail, patched the last one that changed the object.
	warnings []string
	webhook  string
	patched  string
	// called names the webhooks that were called.
	called []string
}

// answer is a response that is known.
type answer struct {
	status  int
	body    []byte
	media   media
	failure *metav1.Status
	// plain answers are text, whatever the media.
	plain bool
	// cut is how many bytes of a short answer are sent; 0 means all.
	cut int
}

// ok answers with one item.
func (q *request) ok(status int, i *item) answer {
	return answer{status: status, body: i.body(q.media), media: q.media}
}

// succeeded answers with a Status, which has no code then.
func (q *request) succeeded(status *metav1.Status) answer {
	status.Kind, status.APIVersion = "Status", "v1"
	return answer{status: http.StatusOK, body: statusBody(status, q.media), media: q.media}
}

// failed answers with an error.
func (q *request) failed(err error) answer {
	status := statusOf(err)
	return answer{status: int(status.Code), body: statusBody(status, q.media), media: q.media, failure: status}
}

// limit is the time that a write may take; clients may ask for less.
func (q *request) limit() time.Duration {
	if asked, err := time.ParseDuration(q.query.Get("timeout")); err == nil && asked > 0 && asked < longestRequest {
		return asked
	}
	return longestRequest
}

// warn adds a warning to the answer, each only once.
func (q *request) warn(text string) {
	for _, have := range q.warnings {
		if have == text {
			return
		}
	}
	q.warnings = append(q.warnings, text)
}

// answer reports and sends the answer, as far as the fate of the request allows.
func (q *request) answer(w http.ResponseWriter, a answer) {
	cut := cmp.Or(a.cut, q.fate.CutAfter)
	if cut <= 0 || cut >= len(a.body) {
		cut = len(a.body)
	}
	whole := cut == len(a.body)
	if report := q.server.options.OnReply; report != nil && q.call.Verb != "watch" {
		report(world.Reply{
			Call: q.call, At: time.Now(), Status: a.status, Failure: a.failure, Called: q.called, Webhook: q.webhook, Warnings: q.warnings,
			Lost: q.fate.Lose || !whole || q.http.Context().Err() != nil,
		})
	}
	if q.fate.Lose {
		panic(http.ErrAbortHandler)
	}
	if a.cut > 0 && !q.fate.Hang {
		a.body = a.body[:cut]
	}
	a.writeHeader(w.Header(), q.warnings)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body[:cut])
	if cut == len(a.body) {
		return
	}
	_ = http.NewResponseController(w).Flush()
	if q.fate.Hang {
		<-q.ctx.Done()
	}
	panic(http.ErrAbortHandler)
}

func (a answer) writeHeader(header http.Header, warnings []string) {
	header.Set("Content-Type", a.media.contentType())
	if a.plain {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	for _, warning := range warningHeaders(warnings) {
		header.Add("Warning", warning)
	}
	if a.failure == nil {
		return
	}
	if after := retryAfter(a.failure); after != "" {
		header.Set("Retry-After", after)
	}
}

// readBody reads the body of a request.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	var data []byte
	var err error
	if n := r.ContentLength; n > 0 && n <= largestBody {
		data = make([]byte, n)
		_, err = io.ReadFull(r.Body, data)
	} else {
		data, err = io.ReadAll(io.LimitReader(r.Body, largestBody+1))
	}
	if err != nil {
		return data, apierrors.NewBadRequest("read the request body: " + err.Error())
	}
	if len(data) > largestBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", largestBody))
	}
	return data, nil
}

// asError returns a Status as an error.
func asError(status *metav1.Status) error {
	return &apierrors.StatusError{ErrStatus: *completed(status)}
}

// ended returns the error of a request whose time is over, or nil.
func (q *request) ended() error {
	if q.call.ArrivedVersion < q.server.store.restoredAt() {
		return errTimeout() // the server that it came to is gone
	}
	err := q.ctx.Err()
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errTimeout()
	}
	return err
}
