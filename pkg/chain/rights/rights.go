// Package rights asks the API server which rights on custom resources are missing, before a watch or a write is refused. A
// refused watch looks like a resource without objects; a message that names the rule saves the search for it.
package rights

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// Ask reports whether an account has a right.
type Ask func(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error)

// Own asks about the account of the client. Every account may ask about itself.
func Own(client authorizationclient.AuthorizationV1Interface) Ask {
	return func(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
		review, err := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
}

// OfServiceAccount asks about a ServiceAccount, which needs the right to create SubjectAccessReviews.
func OfServiceAccount(client authorizationclient.AuthorizationV1Interface, namespace, name string) Ask {
	return func(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
		review, err := client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &right, User: "system:serviceaccount:" + namespace + ":" + name,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
}

// Missing returns those of some rights that an account does not have, with the verbs that are missing. An error says nothing
// about the rights.
func Missing(ctx context.Context, ask Ask, needed []referent.Right) ([]referent.Right, error) {
	var missing []referent.Right
	for _, right := range needed {
		lacks := right
		lacks.Verbs = nil
		for _, verb := range right.Verbs {
			allowed, err := ask(ctx, authorizationv1.ResourceAttributes{
				Verb: verb, Group: right.Resource.Group, Resource: right.Resource.Resource, Namespace: right.Namespace,
			})
			if err != nil {
				return nil, fmt.Errorf("ask for the right to %s %s: %w", verb, right.Resource, err)
			}
			if !allowed {
				lacks.Verbs = append(lacks.Verbs, verb)
			}
		}
		if len(lacks.Verbs) > 0 {
			missing = append(missing, lacks)
		}
	}
	return missing, nil
}

// maxNamed is how many rights a message names.
const maxNamed = 6

// Describe says which rights are missing, and how to grant them.
func Describe(missing []referent.Right, location string) string {
	return fmt.Sprintf("rights on custom resources are missing: %s; print them with pod-reloader roles --config %s, and bind them to the ServiceAccount of the installation",
		reference.Clauses(missing, maxNamed, referent.Right.String), location)
}
