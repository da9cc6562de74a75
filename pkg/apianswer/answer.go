// Package apianswer says what an error of a request proves: whether an object or its namespace does not exist, whether a permission is missing,
// whether an admission webhook denied a write, and whether a write may be stored.
//
// It belongs to the shell of the program, beside the clients. A load balancer or proxy answers in place of the API server at times,
// and client-go reports each of its 404 as NotFound. A false NotFound would restart pods or replace the digest key.
package apianswer

import (
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NotFound reports whether the API server itself sent the NotFound. Treat any other 404 as a temporary failure.
func NotFound(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonNotFound && !Denied(err) &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// AlreadyExists reports whether the API server itself answered that an object of the name exists.
func AlreadyExists(err error) bool { return apierrors.IsAlreadyExists(err) && !Denied(err) }

// NamespaceGone reports whether an object cannot be created because its namespace is deleted, or is being deleted.
func NamespaceGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || Denied(err) {
		return false
	}
	details := status.Status().Details
	return NotFound(err) && details != nil && details.Kind == "namespaces" || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Denied reports whether an admission webhook denied a write. Code, reason and details are the webhook's: often those of a request of its
// own, which controller-runtime passes on. The API server itself writes only the beginning of the message.
func Denied(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.HasPrefix(status.Status().Message, `admission webhook "`)
}

// Unauthorized reports that the API server itself refused a request, and not an admission plugin, webhook or policy: those look at one
// object, and refuse with the same code. The text is the one that the API server has for all its authorizers.
func Unauthorized(err error) bool {
	return !Denied(err) && (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), " is forbidden: User "))
}

// MayBeStart reports whether an API server that has refused requests for a time may have just started: it refuses all of them until it has
// read the roles. What is refused after 7 s lacks a permission.
func MayBeStart(refused time.Duration) bool { return refused < 7*time.Second }

// MayBeStored reports whether a write that failed may be stored all the same: there was no answer, or one that refuses nothing.
func MayBeStored(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}
