package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The order of things follows pkg/admission/plugin/webhook of k8s.io/apiserver.

// review is what admission decides about.
type review struct {
	operation admissionv1.Operation
	// object is nil for a deletion.
	object object
	// old is nil for a creation.
	old *item
	// form has the encodings of object, made when a webhook first needs them.
	form *item
}

// replaced returns the review of another object.
func (r review) replaced(o object) review {
	return review{operation: r.operation, object: o, old: r.old}
}

// failedCall is a webhook that did not answer, or not in a usable way: its failure policy decides.
type failedCall struct {
	webhook string
	reason  error
}

func (e *failedCall) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.reason)
}

func (e *failedCall) Unwrap() error { return e.reason }

// round is the state of mutating admission over its two rounds.
type round struct {
	second bool
	// called are the reinvocable webhooks that were called since the object changed last; again those to call again.
	called, again map[*hook]bool
	changed       bool
}

// change notes that a webhook changed the object.
func (r *round) change() {
	for h := range r.called {
		r.again[h] = true
	}
	clear(r.called)
	r.changed = true
}

// mutate calls the mutating webhooks, and a second time those that want to see what later ones changed. The object given
// is not changed; the same comes back if no webhook changes it.
func (s *Server) mutate(q *request, r review) (object, error) {
	hooks := *s.hooks.Load()
	if len(hooks) == 0 {
		return r.object, nil
	}
	state := &round{called: map[*hook]bool{}, again: map[*hook]bool{}}
	r, err := s.mutateOnce(q, r, hooks, state)
	if err == nil && state.changed {
		state.second = true
		r, err = s.mutateOnce(q, r, hooks, state)
	}
	return r.object, err
}

func (s *Server) mutateOnce(q *request, r review, hooks []*hook, state *round) (review, error) {
	for _, h := range hooks {
		if h.Validating || (state.second && !state.again[h]) {
			continue
		}
		applies, err := s.applies(q, h, &r)
		if err != nil {
			return r, q.rejected(h, err)
		}
		if !applies {
			continue
		}
		next, err := s.callMutating(q, h, &r)
		if next != nil {
			state.change()
			r, q.patched = r.replaced(next), h.Config.Name
		}
		if policy := h.Config.ReinvocationPolicy; policy != nil && *policy == admissionregistrationv1.IfNeededReinvocationPolicy {
			state.called[h] = true
		}
		if err := q.outcome(h, err); err != nil {
			return r, err
		}
	}
	return r, nil
}

// outcome returns the error that ends the request after a webhook was called, as the failure policy says.
func (q *request) outcome(h *hook, err error) error {
	if err == nil {
		return nil
	}
	var failed *failedCall
	if !errors.As(err, &failed) {
		return q.rejected(h, err)
	}
	if !h.ignores() {
		return q.rejected(h, apierrors.NewInternalError(failed))
	}
	return q.ended()
}

// rejected notes which webhook made the request fail.
func (q *request) rejected(h *hook, err error) error {
	q.webhook = h.Config.Name
	return err
}

// invalid notes which webhook made an object invalid: the last one that has changed it, where what the client sent is valid.
func (q *request) invalid(err error, sent, admitted object, validate func(object) error) error {
	if sent != admitted && validate(clone(sent)) == nil {
		q.webhook = q.patched
	}
	return err
}

// validate calls the validating webhooks. kube-apiserver calls them at the same time; here one after another, so that the
// order of their effects is the same in every run.
func (s *Server) validate(q *request, r review) error {
	for _, h := range *s.hooks.Load() {
		if !h.Validating {
			continue
		}
		applies, err := s.applies(q, h, &r)
		if err != nil {
			return q.rejected(h, err)
		}
		if !applies {
			continue
		}
		_, err = s.call(q, h, &r)
		if err := q.outcome(h, err); err != nil {
			return err
		}
	}
	return nil
}

// ignores reports whether a failing webhook is passed over.
func (h *hook) ignores() bool {
	policy := h.Config.FailurePolicy
	return policy != nil && *policy == admissionregistrationv1.Ignore
}

// timeout is how long a call may take; the API's default is 10 s.
func (h *hook) timeout() time.Duration {
	if seconds := h.Config.TimeoutSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return 10 * time.Second
}

// call sends a review and returns the response if the webhook allows the request.
func (s *Server) call(q *request, h *hook, r *review) (*admissionv1.AdmissionResponse, error) {
	if err := h.checkDryRun(q); err != nil {
		return nil, err
	}
	q.called = append(q.called, h.Config.Name)
	sent := s.newReview(q, r)
	ctx, cancel := context.WithTimeout(q.ctx, h.timeout())
	defer cancel()
	got, err := h.Call(ctx, sent)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, &failedCall{h.Config.Name, fmt.Errorf("failed to call webhook: %w", err)}
	}
	if err := verify(got, sent.Request.UID, !h.Validating); err != nil {
		return nil, &failedCall{h.Config.Name, fmt.Errorf("received invalid webhook response: %w", err)}
	}
	for _, warning := range got.Response.Warnings {
		q.warn(warning)
	}
	if !got.Response.Allowed {
		return nil, denied(h.Config.Name, got.Response.Result)
	}
	return got.Response, nil
}

// checkDryRun refuses to call a webhook with side effects in a dry run.
func (h *hook) checkDryRun(q *request) error {
	if !q.call.DryRun {
		return nil
	}
	if effects := h.Config.SideEffects; effects != nil && (*effects == admissionregistrationv1.SideEffectClassNone ||
		*effects == admissionregistrationv1.SideEffectClassNoneOnDryRun) {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.Config.Name))
}
