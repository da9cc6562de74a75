package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusOf returns the Status of an error. What is no API error becomes a 500 without a reason, as in kube-apiserver.
func statusOf(err error) *metav1.Status {
	status := metav1.Status{Message: err.Error(), Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	return completed(&status)
}

// completed fills in what every Status on the wire has.
func completed(status *metav1.Status) *metav1.Status {
	full := *status
	full.Kind, full.APIVersion = "Status", "v1"
	if full.Status == "" {
		full.Status = metav1.StatusFailure
	}
	if full.Code == 0 {
		full.Code = http.StatusInternalServerError
	}
	return &full
}

// retryAfter returns the Retry-After header of a failure, or "".
func retryAfter(status *metav1.Status) string {
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		return strconv.Itoa(int(status.Details.RetryAfterSeconds))
	}
	if status.Code == http.StatusTooManyRequests {
		return "1"
	}
	return ""
}

// errUnknownPath is the answer where nothing is served.
func errUnknownPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func errNotAllowed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// errModified is the conflict of a write whose resourceVersion is not the stored one.
func errModified(k *kind, object string) error {
	return apierrors.NewConflict(k.gr, object,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// errTooLarge is the answer to a version that does not exist yet.
func errTooLarge(wanted, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

// errExpired is the answer to a version whose successors are compacted.
func errExpired(wanted, oldest int64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", wanted, oldest))
}

// errTimeout is the answer to a request that took longer than its deadline.
func errTimeout() error {
	return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
}
