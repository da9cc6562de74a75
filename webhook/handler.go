// Package webhook is the admission handler, POST /mutate: it keeps pod-reloader's annotations on workloads right at the
// moment somebody writes them.
//
// It is a thin shell: it decodes a review, asks pkg/stamp which rule fits, reads the configuration that the rule needs
// to know, asks again which marks must stand, and answers with the patch that makes them. It shares nothing but the pure
// packages with the loop (pkg/reload). Whatever goes wrong in here, the write of the user passes; the loop catches up.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Path is where the handler is to be served: manifests name it.
const Path = "/mutate"

// defaultDeadline bounds the reads for one request. It is below the timeout that manifests give the webhook (3 s), so
// that a slow API server costs a warning and not the marks.
const defaultDeadline = 2 * time.Second

// StateReader reads configuration live.
type StateReader interface {
	// Live returns the state of every given Ref in the namespace, read after the call began and with Entries under each
	// key of the ring; or an error. Its map is not changed afterwards.
	Live(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
}

// Keyring holds the digest keys.
type Keyring interface {
	// Ring returns the keys as of now; it is empty until they are loaded.
	Ring() digest.Ring
}

// Dependencies is what the handler works with. All fields are required.
type Dependencies struct {
	State StateReader
	Keys  Keyring
	// Metrics is where the handler registers its own.
	Metrics prometheus.Registerer
	Log     logr.Logger
}

// Options says how the handler decides.
type Options struct {
	// Kinds returns the kinds of workloads looked after as of now; all others pass untouched.
	Kinds func() workload.Kinds
	// Reader knows the annotations.
	Reader stamp.Reader
	// Scope limits the workloads, as far as their own labels and the names of namespaces tell.
	Scope scope.Scope
	// NamespaceLabels returns the labels of a namespace, as far as they are known without a request. Out of a namespace that
	// Scope leaves out by its labels nothing is read; one that is not known yet is judged by the API server alone. It is
	// called only where labels of namespaces matter; nil knows none.
	NamespaceLabels func(namespace string) (labels map[string]string, known bool)
	// Revision makes the value of config-hash SAP's revision digest.
	Revision bool
	// ReloadMissingRequired reloads also when an object that pods need to start was deleted.
	ReloadMissingRequired bool
	// Deadline bounds the reads for one request; 0 is 2 seconds. A third of the caller's own timeout is always
	// left for the answer.
	Deadline time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Handler answers admission reviews. It serves concurrent requests.
type Handler struct {
	options Options
	state   StateReader
	keys    Keyring
	metrics *metrics
	intake  intake
	log     logr.Logger
}

var _ http.Handler = &Handler{}

// New returns the handler. The error says that its metrics could not be registered.
func New(deps Dependencies, options Options) (*Handler, error) {
	if options.Deadline == 0 {
		options.Deadline = defaultDeadline
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.NamespaceLabels == nil {
		options.NamespaceLabels = func(string) (map[string]string, bool) { return nil, false }
	}
	m := newMetrics()
	if err := m.register(deps.Metrics); err != nil {
		return nil, fmt.Errorf("register the webhook's metrics: %w", err)
	}
	return &Handler{
		options: options, state: deps.State, keys: deps.Keys, metrics: m, intake: newIntake(), log: deps.Log,
	}, nil
}

// ServeHTTP answers one review. What is no review gets a 4xx and a text that says why.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	deadline := h.deadline(r)
	ctx, cancel := context.WithTimeout(r.Context(), deadline)
	defer cancel()
	body, refusal := h.intake.read(ctx, w, r)
	if refusal != nil {
		h.refuse(w, refusal)
		return
	}
	defer body.release()
	size := len(body.data)
	req, err := decodeReview(body.data)
	if err != nil {
		h.refuse(w, &refused{http.StatusBadRequest, err})
		return
	}
	body.data = nil // the request has a copy
	d := h.safely(ctx, req, effort{size: size, deadline: deadline})
	if d.malformed != nil {
		h.refuse(w, &refused{http.StatusBadRequest, d.malformed})
		return
	}
	h.observe(req, d, time.Since(started))
	h.write(w, encodeReview(d.response(req.UID)))
}

// deadline returns how long reads may take: the option, but at most two thirds of what the API server waits for us.
func (h *Handler) deadline(r *http.Request) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return h.options.Deadline
	}
	return min(h.options.Deadline, timeout*2/3)
}

// refused is an answer to what is no review, or cannot be read.
type refused struct {
	status int
	err    error
}

func (h *Handler) refuse(w http.ResponseWriter, r *refused) {
	outcome := outcomeMalformed
	if errors.Is(r.err, errBusy) {
		outcome = outcomeBusy
	}
	h.metrics.decisions.WithLabelValues(ruleNone, outcome).Inc()
	h.log.Info("Refused a request", "outcome", outcome, "status", r.status, "reason", r.err.Error())
	http.Error(w, r.err.Error(), r.status)
}

func (h *Handler) write(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		h.log.V(1).Info("Cannot write the response", "reason", err.Error())
	}
}
