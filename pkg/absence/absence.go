// Package absence distinguishes an object that does not exist from one that was not found.
//
// It belongs to the shell of the program, and stands beside the clients. Between us and the API server there can be a
// load balancer or a proxy, which answers 404 when it knows no way, and client-go takes every 404 for NotFound. But an
// object that is gone has consequences: pods are restarted, a digest key is made anew.
package absence

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Certain reports whether an error is the API server's own word that there is no such object. Any other 404 is a failure
// like those that pass by themselves.
func Certain(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
