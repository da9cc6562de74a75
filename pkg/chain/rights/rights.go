// Package rights asks the API server which rights on custom resources are missing, before a watch or a write is refused. A
// refused watch looks like a resource without objects; a message that names the rule saves the search for it.
package rights

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
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

const (
	// questionLimit bounds one question, so that one without an answer ends the others.
	questionLimit = 5 * time.Second
	// atATime is how many questions are asked at a time. A configuration with many namespaces needs thousands of rights.
	atATime = 8
)

// Missing returns those of some rights that an account does not have, with the verbs that are missing. An error says nothing
// about the rights. It asks several questions at a time.
func Missing(ctx context.Context, ask Ask, needed []referent.Right) ([]referent.Right, error) {
	allowed := make([][]bool, len(needed))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i, right := range needed {
		allowed[i] = make([]bool, len(right.Verbs))
		for j, verb := range right.Verbs {
			group.Go(func() (err error) {
				allowed[i][j], err = one(asking, ask, right, verb)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []referent.Right
	for i, right := range needed {
		lacks := right
		lacks.Verbs = nil
		for j, verb := range right.Verbs {
			if !allowed[i][j] {
				lacks.Verbs = append(lacks.Verbs, verb)
			}
		}
		if len(lacks.Verbs) > 0 {
			missing = append(missing, lacks)
		}
	}
	return missing, nil
}

// one asks for one verb of a right, unless another question has failed.
func one(ctx context.Context, ask Ask, right referent.Right, verb string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, questionLimit)
	defer cancel()
	allowed, err := ask(ctx, authorizationv1.ResourceAttributes{
		Verb: verb, Group: right.Resource.Group, Resource: right.Resource.Resource, Namespace: right.Namespace,
	})
	if err != nil {
		return false, fmt.Errorf("ask for the right to %s %s: %w", verb, right.Resource, err)
	}
	return allowed, nil
}

// maxNamed is how many rights a message names.
const maxNamed = 6

// Describe says which rights are missing, and how to grant them.
func Describe(missing []referent.Right, location string) string {
	return fmt.Sprintf("rights on custom resources are missing: %s; print them with pod-reloader roles --config %s, and bind them to the ServiceAccount of the installation",
		reference.Clauses(missing, maxNamed, referent.Right.String), location)
}
