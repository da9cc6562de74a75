package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Version is what the server says it is.
var Version = version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3", GoVersion: "go", Compiler: "gc", Platform: "linux/amd64"}

// Server is the model of an API server with its store. It is safe for concurrent use.
type Server struct {
	options Options
	kinds   []*kind
	served  map[served]*kind
	store   *store
	accepts sync.Map
	// withdrawn has the kinds that are not served, and whether discovery shows them.
	withdrawn sync.Map
	hooks     atomic.Pointer[[]*hook]
	tracker   *tracker
	owners    owners

	calls   atomic.Int64
	watches atomic.Int64
	behind  atomic.Int64
	folded  atomic.Int64
	running context.Context
	stop    context.CancelFunc
}

var _ http.Handler = (*Server)(nil)

// New returns a Server with an empty store. The error is about the conditions or selectors of a webhook.
func New(o Options) (*Server, error) {
	if o.Client == nil {
		o.Client = func(r *http.Request) string { return manager("", r.UserAgent()) }
	}
	s := &Server{options: o, kinds: kinds(), served: map[served]*kind{}}
	if o.Graph {
		s.kinds = append(s.kinds, graphKinds()...)
	}
	for _, k := range s.kinds {
		s.served[served{k.Group, k.Version, k.Plural}] = k
	}
	s.store = newStore(s.kinds, o.OnCommit)
	s.running, s.stop = context.WithCancel(context.Background())
	if o.TrackFields {
		var err error
		if s.tracker, err = newTracker(s.kinds); err != nil {
			return nil, fmt.Errorf("track managed fields: %w", err)
		}
	}
	return s, s.SetWebhooks(o.Webhooks)
}

// SetWebhooks replaces the registered webhooks, for requests that come to admission from now on.
func (s *Server) SetWebhooks(webhooks []Webhook) error {
	hooks := make([]*hook, 0, len(webhooks))
	for _, w := range webhooks {
		h, err := newHook(w)
		if err != nil {
			return fmt.Errorf("register webhook %s: %w", w.Config.Name, err)
		}
		hooks = append(hooks, h)
	}
	s.hooks.Store(&hooks)
	return nil
}

// Behind returns how many gets, lists and watches of a server that lags were served from a state that was not the last one.
func (s *Server) Behind() int { return int(s.behind.Load()) }

// Folded returns how many states of objects no watch has delivered because it expired before: a newer state took their place.
func (s *Server) Folded() int { return int(s.folded.Load()) }

// Stop ends all watches and all requests that hang or wait at the gate, so that their goroutines end.
func (s *Server) Stop() { s.stop() }

// ServeHTTP serves one request. It panics with http.ErrAbortHandler to close the connection without a whole answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.running, cancel)() //nolint:contextcheck // the Server outlives its requests
	q := s.request(ctx, r)
	if s.options.Gate != nil {
		q.fate = s.options.Gate(ctx, q.call)
	}
	if q.fate.Late {
		q.ctx = context.WithoutCancel(ctx)
	}
	switch f := q.fate; {
	case f.Hang && f.Short == 0:
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	case f.Drop, ctx.Err() != nil && !f.Late:
		panic(http.ErrAbortHandler)
	case f.Refuse != nil:
		q.answer(w, q.failed(asError(f.Refuse)))
		return
	}
	if err := s.admissible(q); err != nil {
		q.answer(w, q.failed(err))
		return
	}
	s.respond(w, q) //nolint:contextcheck // the request has its context
}

// respond answers a request that is admissible.
func (s *Server) respond(w http.ResponseWriter, q *request) {
	switch {
	case q.kind == nil:
		q.answer(w, s.serve(q))
	case !s.isServed(q.kind):
		q.answer(w, notServed())
	case q.call.Verb == "watch":
		s.watch(w, q)
	default:
		q.answer(w, s.serve(q))
	}
}

// request reads a request as far as it can be understood without serving it.
func (s *Server) request(ctx context.Context, r *http.Request) *request {
	q := &request{
		server: s, ctx: ctx, http: r, query: r.URL.Query(),
		call: &world.Call{
			Number: s.calls.Add(1), Client: s.options.Client(r), Path: r.URL.RequestURI(),
			ContentType: bodyType(r.Header.Get("Content-Type")), Arrived: time.Now(), ArrivedVersion: s.store.now(),
		},
	}
	q.call.Body, q.err = readBody(r)
	if m, err := s.negotiated(r.Header.Get("Accept")); err == nil {
		q.media, q.call.Partial = m, m.partial
	} else if q.err == nil {
		q.err = err
	}
	q.call.DryRun = q.query.Get("dryRun") == "All"
	found, ok := s.route(r.URL.Path)
	if !ok {
		return q
	}
	q.route = found
	q.media.protobuf = q.media.protobuf && (!found.kind.custom || q.media.partial)
	q.call.Key = keyOf(found.kind, found.at)
	q.call.Subresource = found.subresource
	watch := q.query.Get("watch")
	verb, ok := found.verb(r.Method, watch == "true" || watch == "1")
	if !ok || (verb == "create" && found.kind.Namespaced && found.at.namespace == "") {
		q.err = errNotAllowed()
	}
	q.call.Verb = verb
	if verb == "delete" {
		q.readDeletion()
	}
	return q
}

// admissible returns why a request is not served at all.
func (s *Server) admissible(q *request) error {
	if q.err != nil {
		return q.err
	}
	if s.options.Authorize == nil || q.kind == nil {
		return nil
	}
	if denied := s.options.Authorize(q.call); denied != nil {
		return asError(denied)
	}
	return nil
}

// serve answers everything but watches.
func (s *Server) serve(q *request) answer {
	if q.kind == nil {
		return s.serveOther(q)
	}
	switch q.call.Verb {
	case "get":
		return s.serveGet(q)
	case "list":
		return s.serveList(q)
	}
	ctx, cancel := context.WithTimeout(q.ctx, q.limit())
	defer cancel()
	q.ctx = ctx
	var a answer
	var err error
	switch q.call.Verb {
	case "create":
		a, err = s.create(q)
	case "update":
		a, err = s.put(q)
	case "patch":
		a, err = s.patch(q)
	case "delete":
		a, err = s.delete(q)
	}
	if err != nil {
		return q.failed(err)
	}
	return a
}
