// Package absence distinguishes an object that does not exist from one that was not found.
//
// It belongs to the shell of the program, beside the clients. A load balancer or proxy without a route also answers 404, and
// client-go reports each 404 as NotFound. A false NotFound would restart pods or replace the digest key.
package absence

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Certain reports whether the API server itself sent the NotFound. Treat any other 404 as a temporary failure.
func Certain(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
