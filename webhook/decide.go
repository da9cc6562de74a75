package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// The first words of warnings about writes that passed without a decision.
const (
	WarningUnchecked = "pod-reloader could not check this write"
	WarningFailed    = "pod-reloader failed and passed this write unchanged; it retries by itself, and its log has the details"
)

// decision is the outcome of one request.
type decision struct {
	// rule is the name of a stamp.Rule, or ruleNone.
	rule    string
	outcome string
	result  stamp.Result
	ops     []jsonpatch.Operation
	// warnings are for the user, bounded.
	warnings []string
}

// acted reports whether the request gets a line in the log and in the audit log.
func (d decision) acted() bool {
	return len(d.ops) > 0 || d.result.Reject != nil || len(d.warnings) > 0
}

// decideRecovering decides, and lets the request pass when deciding panics: what an admission.Webhook answers to a panic rejects it.
func (h *Handler) decideRecovering(ctx context.Context, req *admissionv1.AdmissionRequest, timeout time.Duration) (d decision) {
	defer func() {
		if cause := recover(); cause != nil {
			h.metrics.panics.Inc()
			identified(h.log, req).Error(fmt.Errorf("panic: %v", cause), "admission panicked; the request passes unchanged",
				"stack", string(debug.Stack()))
			d = decision{rule: ruleNone, outcome: outcomePanicked, warnings: []string{WarningFailed}}
		}
	}()
	return h.decide(ctx, req, timeout)
}

// decide chooses a rule, reads what it needs, and applies it.
func (h *Handler) decide(ctx context.Context, req *admissionv1.AdmissionRequest, timeout time.Duration) decision {
	if err := validate(req); err != nil {
		return malformed(err)
	}
	kind, ours := h.options.Kinds().Get(schema.GroupVersionKind(req.Kind))
	if !ours || req.SubResource != "" || req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return decision{rule: ruleNone, outcome: outcomeUnchanged}
	}
	if h.outside(req.Namespace) {
		return decision{rule: ruleNone, outcome: outcomeUnchanged}
	}
	release, err := h.intake.review(ctx, req.Namespace, weightOf(req), h.incoming(ctx).large)
	if err != nil {
		return unadmitted(err, timeout)
	}
	defer release()
	wr, err := decodeWrite(kind, req)
	if err != nil {
		return malformed(err)
	}
	if !h.options.Scope.Object(wr.namespace, wr.current.Labels()) {
		// Out of scope is not excluded: another installation may handle it.
		return decision{rule: ruleNone, outcome: outcomeUnchanged}
	}
	parsed, done, err := h.parse(ctx, wr)
	if err != nil {
		return busy(err, timeout)
	}
	defer done()
	return h.decideWrite(ctx, wr, parsed, timeout)
}

// parse parses a write, and waits until the objects that its versions can track may be in memory: one that may wait is parsed again.
func (h *Handler) parse(ctx context.Context, wr write) (stamp.Parsed, func(), error) {
	parsed := h.options.Reader.Parse(wr.old, wr.current)
	objects := parsed.Most()
	if objects <= freeObjects {
		return parsed, func() {}, nil
	}
	done, err := h.intake.track(ctx, wr.namespace, objects)
	if err != nil {
		return stamp.Parsed{}, nil, err
	}
	return h.options.Reader.Parse(wr.old, wr.current), done, nil
}

// decideWrite is decide for a write of a workload that is handled here.
func (h *Handler) decideWrite(ctx context.Context, wr write, parsed stamp.Parsed, timeout time.Duration) decision {
	c := h.choose(wr, parsed)
	done, err := h.intake.read(ctx, wr.namespace, len(c.plan.Reads))
	defer done()
	live := h.read(ctx, wr.namespace, c, cmp.Or(c.request.New.Unresolved, err), timeout)
	if h.learn(ctx, c.request, live) {
		if again := h.choose(wr, parsed); live.Has(again.plan.Reads) {
			c = again
		}
	}
	request, result := c.request, c.plan.Apply(c.request, live)

	d := decision{rule: string(result.Rule), result: result}
	if result.Reject == nil {
		d.ops = h.operations(request, wr, result.Managed)
	}
	d.outcome = outcome(result, len(d.ops))
	var warnings []string
	if !request.New.Ignored {
		for _, p := range c.problems {
			warnings = append(warnings, "pod-reloader: "+p.Message)
		}
	}
	d.warnings = limitWarnings(append(warnings, result.Warnings...))
	return d
}

// choice is the rule that fits a write.
type choice struct {
	request  stamp.Write
	problems []annotation.Problem
	plan     stamp.Plan
}

func (h *Handler) choose(wr write, parsed stamp.Parsed) choice {
	request, problems := h.options.Reader.ReadWrite(wr.old, wr.current, parsed)
	return choice{request, problems, stamp.Choose(request)}
}

// busy lets a request pass that others leave no time or no memory for.
func busy(reason error, timeout time.Duration) decision {
	within := ""
	if !errors.Is(reason, fairlimit.ErrFull) {
		within = fmt.Sprintf(" within %s", timeout)
	}
	return decision{rule: ruleNone, outcome: outcomeBusy, warnings: []string{fmt.Sprintf(
		WarningUnchecked+"%s: %v; it retries by itself", within, errBusy)}}
}

// unadmitted lets a request pass that may not be decided.
func unadmitted(reason error, timeout time.Duration) decision {
	if !errors.Is(reason, errTooLarge) {
		return busy(reason, timeout)
	}
	return decision{rule: ruleNone, outcome: outcomeBusy, warnings: []string{
		fmt.Sprintf(WarningUnchecked+": %v; it retries by itself", reason),
	}}
}

// malformed lets an invalid request pass. The API server sends none.
func malformed(reason error) decision {
	return decision{rule: ruleNone, outcome: outcomeMalformed, warnings: limitWarnings([]string{
		fmt.Sprintf("pod-reloader could not read this write: %v", reason),
	})}
}

// outside reports whether a namespace is known to be out of scope. The API server sends no request for it, but any pod that
// reaches the port can.
func (h *Handler) outside(namespace string) bool {
	if !h.options.Scope.SelectsNamespaces() {
		return !h.options.Scope.Namespace(namespace, nil)
	}
	labels, known := h.options.NamespaceLabels(namespace)
	return known && !h.options.Scope.Namespace(namespace, labels)
}

// operations returns the patch that sets the annotations. A request for a reload that is purged leaves no owner of its field.
func (h *Handler) operations(request stamp.Write, wr write, managed stamp.Managed) []jsonpatch.Operation {
	ops := h.options.Reader.Operations(wr.current, managed, h.keptPause(request.New, wr, managed)...)
	_, asked := request.New.Managed[stamp.Dummy]
	if _, left := managed[stamp.Dummy]; asked && !left {
		ops = append(ops, disown(wr.current.Raw, h.options.Reader.Keys.ConfigHash)...)
	}
	return ops
}

// read gathers what a rule needs to know; nothing, for most requests. An error says why it cannot read: where it is unresolved which
// objects the workload tracks, their states are of no use.
func (h *Handler) read(ctx context.Context, namespace string, c choice, unreadable error, timeout time.Duration) stamp.Inputs {
	live := stamp.Inputs{Settings: h.options.Settings, Ring: h.keys.Ring(), Namespace: namespace, Now: h.options.Now()}
	if len(c.plan.Reads) == 0 {
		return live
	}
	if live.Err = unreadable; live.Err != nil {
		return live
	}
	if live.Ring.Empty() {
		live.Err = digest.ErrNoKey
		return live
	}
	if c.request.NeedsKey(live.Ring) {
		live.RingRead = h.refreshKeys(ctx, timeout/keysPart)
		live.Ring = h.keys.Ring()
	}
	live.States, live.Err = h.state.ReadLive(ctx, namespace, c.plan.Reads)
	if recovering.Log(h.log, live.Err) {
		h.metrics.panics.Inc()
	}
	if live.Err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		live.Err = fmt.Errorf("the API server did not answer within %s: %w", timeout, live.Err)
	}
	return live
}

// refreshKeys reads the digest keys, and waits for that for a time. It reports whether a key that the ring does not have now is lost. Others
// may have had them read within this second: then that is not known.
func (h *Handler) refreshKeys(ctx context.Context, limit time.Duration) bool {
	since := h.options.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began, err := h.keys.Refresh(ctx)
	if err != nil {
		h.log.V(1).Info("cannot read the digest keys; deciding with those in memory", "error", err.Error())
		return false
	}
	return !began.Before(since)
}

// learn reads labels and annotations on which it depends what the workload tracks, where they may not be listed. It reports whether there
// are any. Without those that cannot be read in time, the decision is made as if they did not hide anything: a reload too many is better
// than one that is missing.
func (h *Handler) learn(ctx context.Context, request stamp.Write, live stamp.Inputs) bool {
	if live.Err != nil {
		return false // the write passes without a stamp, or is rejected, whatever they say
	}
	unseen := policy.Unseen(request.New.Intent, live.States)
	if len(unseen) == 0 {
		return false
	}
	err := h.state.Learn(ctx, live.Namespace, unseen)
	if recovering.Log(h.log, err) {
		h.metrics.panics.Inc()
	} else if err != nil {
		h.log.V(1).Info("cannot read the annotations of config objects", "namespace", live.Namespace, "error", err.Error())
	}
	return true
}

func outcome(result stamp.Result, operations int) string {
	switch {
	case result.Reject != nil && result.Reject.Conflict:
		return outcomeRejected
	case result.Reject != nil:
		return outcomeUnverified
	case result.ReadError != nil:
		return outcomeUnread
	case operations == 0:
		return outcomeUnchanged
	case result.Stamped:
		return outcomeStamped
	default:
		return outcomePatched
	}
}

// observe counts and logs a decision; names of objects go to the log only.
func (h *Handler) observe(req *admissionv1.AdmissionRequest, d decision, took time.Duration) {
	h.metrics.decisions.WithLabelValues(d.rule, d.outcome).Inc()
	h.metrics.duration.WithLabelValues(d.rule).Observe(took.Seconds())
	log := h.log
	switch {
	case d.outcome == outcomeMalformed || d.outcome == outcomeBusy:
		log = h.invalid.next(d.outcome)
	case !d.acted():
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	identified(log, req).Info("admission decided", "rule", d.rule, "outcome", d.outcome,
		"changes", policy.Describe(d.result.Changes), "warnings", len(d.warnings),
		"dryRun", req.DryRun != nil && *req.DryRun, "duration", took.String())
}

// response puts a decision into the form of the API.
func (d decision) response() admission.Response {
	response := admission.Patched("", d.ops...).WithWarnings(d.warnings...)
	if d.acted() {
		response.AuditAnnotations = map[string]string{"rule": d.rule, "outcome": d.outcome}
		if len(d.result.Changes) > 0 {
			response.AuditAnnotations["changes"] = policy.Describe(d.result.Changes)
		}
	}
	if d.result.Reject != nil {
		response.Allowed, response.Result = false, status(d.result.Reject)
	}
	return response
}

// status returns the error that the client gets: its retry loops know a Conflict, and a request that could not be
// verified is to be retried after a second.
func status(r *stamp.Rejection) *metav1.Status {
	if r.Conflict {
		return &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusConflict, Message: r.Message, Reason: metav1.StatusReasonConflict,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: digest.Mismatch}}},
		}
	}
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Message: r.Message,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: digest.Unverifiable}}, RetryAfterSeconds: 1},
	}
}
