// Package webhook is the admission handler, POST /mutate: it keeps pod-reloader's annotations on workloads right
// while workloads are written.
//
// It is a thin shell around an admission.Webhook of controller-runtime, which decodes a review and encodes the answer.
// It asks pkg/stamp which rule fits, and reads the configuration that the rule needs to know. Then it asks again which
// annotations the workload must have, and answers with the patch that sets them. It shares nothing but the pure
// packages with the loop (pkg/reload). If the webhook itself fails, the write of the user passes, and the loop catches
// up.
//
// controller-runtime limits the memory of one body, not of all callers' bodies; answers a panic with a rejection; and cancels
// requests in flight when its Server stops. This package handles all three: see intake, decideRecovering and withTimeout.
package webhook

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Path is where the handler is to be served: manifests name it.
const Path = "/mutate"

// defaultDeadline bounds the reads for one request. It is below the timeout that manifests give the webhook (3 s), so
// that a slow API server causes a warning and not a lost annotation.
const defaultDeadline = 2 * time.Second

// keysPart is the part of the time for reads that a read of the digest keys may take, as the divisor.
const keysPart = 4

// StateReader reads configuration live.
type StateReader interface {
	// ReadLive returns the state of every given Ref in the namespace, read after the call began and with Entries under each
	// key of the ring; or an error. Its map is not changed afterwards.
	ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
	// Learn reads the labels and annotations of config objects that are Unseen.
	Learn(ctx context.Context, namespace string, refs []reference.Ref) error
}

// Keyring holds the digest keys.
type Keyring interface {
	// Ring returns the keys as of now; it is empty until they are loaded.
	Ring() digest.Ring
	// Refresh reads the keys anew, at most once a second for all callers, and returns when the read of those in the ring began.
	Refresh(ctx context.Context) (began time.Time, err error)
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
	// Kinds returns the kinds of workloads that are handled now; all others pass untouched.
	Kinds func() workload.Kinds
	// Reader knows the annotations.
	Reader stamp.Reader
	// Scope limits the workloads, by their own labels and the names of namespaces.
	Scope scope.Scope
	// NamespaceLabels returns the labels of a namespace, as far as they are known without a request. Out of a namespace that
	// Scope leaves out by its labels nothing is read; one that is not known for certain is judged by the API server alone. It is
	// called only where labels of namespaces matter; nil knows none.
	NamespaceLabels func(namespace string) (labels map[string]string, known bool)
	stamp.Settings
	// PausedAt is the annotation with the begin of a pause of ours, which is kept; empty if none is.
	PausedAt string
	// Deadline bounds the reads for one request; 0 is 2 seconds. A third of the caller's own timeout is always
	// left for the answer.
	Deadline time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Handler decides admission requests, and serves their reviews. It serves concurrent requests.
type Handler struct {
	options Options
	state   StateReader
	keys    Keyring
	metrics *metrics
	intake  intake
	log     logr.Logger
	invalid invalidLog
	// webhook decodes reviews for Handle and encodes its responses.
	webhook admission.Webhook
}

var (
	_ admission.Handler = &Handler{}
	_ http.Handler      = &Handler{}
)

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
	h := &Handler{
		options: options, state: deps.State, keys: deps.Keys, metrics: m, intake: newIntake(), log: deps.Log, invalid: newInvalidLog(deps.Log),
	}
	h.webhook.Handler = h
	h.webhook.WithContextFunc = h.withTimeout
	h.webhook.LogConstructor = h.invalid.logger
	return h, nil
}

// ServeHTTP answers one review. What is no review gets an answer without a uid, which the API server takes for a failed
// call: the webhook's failurePolicy says what becomes of the write.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, r := h.intake.receive(w, r)
	defer in.end()
	w.Header().Set("Content-Type", "application/json")
	h.webhook.ServeHTTP(w, r)
	switch {
	case in.busy:
		h.metrics.decisions.WithLabelValues(ruleNone, outcomeBusy).Inc()
	case !in.decoded:
		h.metrics.decisions.WithLabelValues(ruleNone, outcomeMalformed).Inc()
	}
}

// withTimeout bounds the context of a decision by the caller's timeout. It goes on when a Server stops, which ends the
// contexts of all requests at once: those in flight are still decided.
func (h *Handler) withTimeout(ctx context.Context, r *http.Request) context.Context {
	in := h.incoming(ctx)
	in.timeout = h.timeout(r)
	ctx, in.cancel = context.WithDeadline(context.WithoutCancel(ctx), in.arrived.Add(in.timeout))
	return ctx
}

// timeout returns how long reads may take: the option, but at most two thirds of what the API server waits for us.
func (h *Handler) timeout(r *http.Request) time.Duration {
	timeout, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || timeout <= 0 {
		return h.options.Deadline
	}
	return min(h.options.Deadline, timeout*2/3)
}

// incoming returns the request that a context belongs to; a new one where Handle is called by itself.
func (h *Handler) incoming(ctx context.Context) *incoming {
	if in, ok := ctx.Value(incomingKey{}).(*incoming); ok {
		return in
	}
	return &incoming{arrived: time.Now(), timeout: h.options.Deadline}
}

// Handle decides one request until the context ends. It rejects nothing but a request for a reload whose digest does not
// match, or cannot be compared.
func (h *Handler) Handle(ctx context.Context, req admission.Request) admission.Response {
	in := h.incoming(ctx)
	in.decoded = true
	d := h.decideRecovering(ctx, &req.AdmissionRequest, in.timeout)
	h.observe(&req.AdmissionRequest, d, time.Since(in.arrived))
	return d.response()
}
