package act

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// API sends one request; the implementation adds the base URL and credentials. An error means that no answer came.
type API interface {
	Do(ctx context.Context, r Request) (Response, error)
}

// Request is one request to the API server.
type Request struct {
	Method string
	// Path has the query as well, e.g. "/apis/apps/v1/namespaces/shop/deployments/cart?fieldManager=kubectl-edit".
	Path        string
	ContentType string
	Body        []byte
}

// Response is the answer to a Request.
type Response struct {
	Status   int
	Body     []byte
	Warnings []string
}

// Send sends a request to a URL, for an answer of a media type.
func Send(ctx context.Context, by *http.Client, url string, r Request, accept string) (Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, url+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return Response{}, fmt.Errorf("make the request: %w", err)
	}
	if r.ContentType != "" {
		request.Header.Set("Content-Type", r.ContentType)
	}
	request.Header.Set("Accept", accept)
	response, err := by.Do(request)
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, fmt.Errorf("read the answer: %w", err)
	}
	return Response{Status: response.StatusCode, Body: body, Warnings: response.Header.Values("Warning")}, nil
}

// ErrSkipped is wrapped by the error of an act that found nothing to act on: the object does not exist (yet), there is no
// earlier revision, or kubectl would refuse. Shrinking removes steps, so this is no failure.
var ErrSkipped = errors.New("nothing to act on")

// RejectedError says that the API server, or a webhook, rejected a request.
type RejectedError struct {
	Method, Path string
	// Status is the HTTP status; Reason and Message are those of the Status object in the answer, if there is one.
	Status          int
	Reason, Message string
}

// Error names the request and the answer.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("%s %s: status %d %s: %s", e.Method, e.Path, e.Status, e.Reason, e.Message)
}

// Is makes "not found" an ErrSkipped.
func (e *RejectedError) Is(target error) bool {
	return target == ErrSkipped && e.Status == 404 && e.Reason == "NotFound"
}

func skip(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrSkipped)...)
}

func rejectedFor(err error, reason string) bool {
	rejected, ok := errors.AsType[*RejectedError](err)
	return ok && rejected.Reason == reason
}
