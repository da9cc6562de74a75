package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// newReview builds what a webhook is sent. Its UID is made of the number of the call, so that it is the same in every run.
func (s *Server) newReview(q *request, r *review) *admissionv1.AdmissionReview {
	k, dry := q.kind, q.call.DryRun
	gvk := metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	gvr := metav1.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Plural}
	request := &admissionv1.AdmissionRequest{
		UID:  types.UID(fmt.Sprintf("00000000-0000-4000-9000-%08x%04x", q.call.Number, len(q.called))),
		Kind: gvk, Resource: gvr, SubResource: q.subresource,
		RequestKind: &gvk, RequestResource: &gvr, RequestSubResource: q.subresource,
		Name: r.name(q), Namespace: r.namespace(q), Operation: r.operation,
		UserInfo: authenticationv1.UserInfo{Username: q.call.Client, Groups: []string{"system:authenticated"}},
		DryRun:   &dry,
		Options:  runtime.RawExtension{Raw: optionsOf(q, r.operation)},
	}
	if r.object != nil {
		request.Object.Raw = r.forms(k).json()
	}
	if r.old != nil {
		request.OldObject.Raw = r.old.json()
	}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	}
}

// name is that of the object. One that is still to be generated is not known to webhooks.
func (r *review) name(q *request) string {
	if q.at.name == "" && r.object != nil {
		return metaOf(r.object).Name
	}
	return q.at.name
}

// namespace is that of the object, and for a Namespace its own name.
func (r *review) namespace(q *request) string {
	if q.kind.Plural == "namespaces" {
		return r.name(q)
	}
	return q.at.namespace
}

// forms returns the encodings of the object.
func (r *review) forms(k *kind) *item {
	if r.form == nil {
		r.form = newItem(k, r.object, r.old)
	}
	return r.form
}

// optionsOf returns the options of the request, as far as webhooks may be interested.
func optionsOf(q *request, operation admissionv1.Operation) []byte {
	options := struct {
		Kind         string   `json:"kind"`
		APIVersion   string   `json:"apiVersion"`
		FieldManager string   `json:"fieldManager,omitempty"`
		DryRun       []string `json:"dryRun,omitempty"`
	}{
		Kind:       map[admissionv1.Operation]string{admissionv1.Create: "CreateOptions", admissionv1.Update: "UpdateOptions", admissionv1.Delete: "DeleteOptions"}[operation],
		APIVersion: "meta.k8s.io/v1", FieldManager: q.query.Get("fieldManager"),
	}
	if q.call.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return toJSON(options)
}

// verify checks the form of a response.
func verify(got *admissionv1.AdmissionReview, uid types.UID, mutating bool) error {
	switch {
	case got == nil || got.Response == nil:
		return errors.New("webhook response was absent")
	case got.Response.UID != uid:
		return fmt.Errorf("expected response.uid=%q, got %q", uid, got.Response.UID)
	case got.APIVersion != "admission.k8s.io/v1" || got.Kind != "AdmissionReview":
		return fmt.Errorf("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got %s", got.GroupVersionKind())
	}
	return verifyPatch(got.Response, mutating)
}

func verifyPatch(got *admissionv1.AdmissionResponse, mutating bool) error {
	patch, patchType := len(got.Patch) > 0, got.PatchType
	switch {
	case !mutating && (patch || patchType != nil):
		return errors.New("validating webhook may not return response.patch")
	case patch && patchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	case !patch && patchType != nil:
		return errors.New("webhook returned response.patchType but not response.patch")
	case patch && *patchType != admissionv1.PatchTypeJSONPatch:
		return fmt.Errorf("unsupported patch type %q", *patchType)
	}
	return nil
}

// denied is the answer to a request that a webhook rejects: what it says, with a code of at least 400.
func denied(webhook string, result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	status.Code = max(status.Code, http.StatusBadRequest)
	if status.Status == "" || status.Status == metav1.StatusSuccess {
		status.Status = metav1.StatusFailure
	}
	by := fmt.Sprintf("admission webhook %q denied the request", webhook)
	switch {
	case status.Message != "":
		status.Message = by + ": " + status.Message
	case status.Reason != "":
		status.Message = by + ": " + string(status.Reason)
	default:
		status.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// callMutating calls a webhook and returns the object that it makes, or nil if it changes nothing.
func (s *Server) callMutating(q *request, h *hook, r *review) (object, error) {
	response, err := s.call(q, h, r)
	if err != nil || len(response.Patch) == 0 {
		return nil, err
	}
	patch, err := decodeOperations(response.Patch)
	if err != nil {
		return nil, &failedCall{h.Config.Name, fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	}
	if len(patch) == 0 {
		return nil, nil //nolint:nilnil // no change and no error
	}
	if r.object == nil {
		return nil, apierrors.NewInternalError(fmt.Errorf(
			"admission webhook %q attempted to modify the object, which is not supported for this operation", h.Config.Name))
	}
	before := r.forms(q.kind)
	next, ok := patch.annotated(before)
	if !ok {
		text, err := patch.patch(before)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if next, err = q.kind.decode(text); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	if newItem(q.kind, next, before).same(before) {
		return nil, nil //nolint:nilnil // no change and no error
	}
	setDefaults(next)
	return next, nil
}
