package simulate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// shortcut hands requests to the API server without a connection, and all others to the transport: those for leases, which are
// most of all requests and always the same, and in most histories all but watches. What net/http makes of a broken connection
// shows in the others.
type shortcut struct {
	next   http.RoundTripper
	server http.Handler
	client string
	// online ends when the client is cut off.
	online context.Context //nolint:containedctx // it is the state of the network, not of a call
	// refused reports whether the API server refuses connections of the client; nil means never.
	refused func() bool
	// all hands over all requests but watches.
	all bool
}

// connectedOf is how many histories there are for each in which all requests but those for leases use connections.
const connectedOf = 4

// takes reports whether a request needs no connection.
func (l *shortcut) takes(r *http.Request) bool {
	return l.all && !strings.Contains(r.URL.RawQuery, "watch=") || strings.Contains(r.URL.Path, "/"+world.Leases.Plural)
}

// RoundTrip sends one request.
func (l *shortcut) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.takes(r) {
		return l.next.RoundTrip(r)
	}
	if l.online.Err() != nil || l.refused != nil && l.refused() {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.online, cancel)() //nolint:contextcheck // the network outlives its requests
	served := r.WithContext(ctx)                // the server changes neither the header nor the URL
	served.RemoteAddr, served.RequestURI = l.client, r.URL.RequestURI()
	answers := make(chan *recorded, 1)
	go func() { answers <- record(l.server, served) }()
	select {
	case answer := <-answers:
		return answer.response(r)
	case <-ctx.Done():
		if r.Context().Err() != nil {
			return nil, context.Cause(r.Context())
		}
		return nil, &net.OpError{Op: "read", Net: "memory", Err: syscall.ECONNRESET}
	}
}

// recorded is what a handler answers.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
	// aborted means that the connection was closed before all of the answer was sent.
	aborted bool
}

// record has a handler serve a request.
func record(handler http.Handler, r *http.Request) (w *recorded) {
	w = &recorded{header: http.Header{}}
	defer func() {
		failure := recover()
		if err, ok := failure.(error); failure != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
			panic(failure)
		}
		w.aborted = failure != nil
	}()
	handler.ServeHTTP(w, r)
	return w
}

func (w *recorded) Header() http.Header { return w.header }

func (w *recorded) WriteHeader(status int) { w.status = status }

func (w *recorded) Write(p []byte) (int, error) { return w.body.Write(p) }

// Flush is for http.ResponseController.
func (w *recorded) Flush() {}

// response is the answer as a client gets it.
func (w *recorded) response(r *http.Request) (*http.Response, error) {
	if w.status == 0 {
		return nil, io.EOF
	}
	length, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	var body io.Reader = &w.body
	if w.aborted {
		body = io.MultiReader(body, cut{})
	}
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(body), ContentLength: length, Request: r,
	}, nil
}

// cut is the end of a body that was not sent as a whole.
type cut struct{}

// Read always fails.
func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
