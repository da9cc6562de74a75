// Package permissions asks the API server which permissions on custom resources are missing, before a watch or a write is refused. A
// refused watch looks like a resource without objects; a message that names the rule saves the search for it.
package permissions

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

// Ask reports whether an account has a permission.
type Ask func(ctx context.Context, permission authorizationv1.ResourceAttributes) (bool, error)

// Own asks about the account of the client. Every account may ask about itself.
func Own(client authorizationclient.AuthorizationV1Interface) Ask {
	return func(ctx context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
		review, err := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &permission},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
}

// OfServiceAccount asks about a ServiceAccount, which needs the permission to create SubjectAccessReviews.
func OfServiceAccount(client authorizationclient.AuthorizationV1Interface, namespace, name string) Ask {
	return func(ctx context.Context, permission authorizationv1.ResourceAttributes) (bool, error) {
		review, err := client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: &permission, User: "system:serviceaccount:" + namespace + ":" + name,
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
	// atATime is how many questions are asked at a time. A configuration with many namespaces needs thousands of permissions.
	atATime = 8
)

// Missing returns those of some permissions that an account does not have, with the verbs that are missing. An error says nothing
// about the permissions. It asks several questions at a time.
func Missing(ctx context.Context, ask Ask, needed []referent.Permission) ([]referent.Permission, error) {
	allowed := make([][]bool, len(needed))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i, permission := range needed {
		allowed[i] = make([]bool, len(permission.Verbs))
		for j, verb := range permission.Verbs {
			group.Go(func() (err error) {
				allowed[i][j], err = one(asking, ask, permission, verb)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var missing []referent.Permission
	for i, permission := range needed {
		lacks := permission
		lacks.Verbs = nil
		for j, verb := range permission.Verbs {
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

// one asks for one verb of a permission, unless another question has failed.
func one(ctx context.Context, ask Ask, permission referent.Permission, verb string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, questionLimit)
	defer cancel()
	allowed, err := ask(ctx, authorizationv1.ResourceAttributes{
		Verb: verb, Group: permission.Resource.Group, Resource: permission.Resource.Resource, Namespace: permission.Namespace,
	})
	if err != nil {
		return false, fmt.Errorf("ask for the permission to %s %s: %w", verb, permission.Resource, err)
	}
	return allowed, nil
}

// maxNamed is how many permissions a message names.
const maxNamed = 6

// Describe says which permissions are missing, and how to grant them.
func Describe(missing []referent.Permission, location string) string {
	return fmt.Sprintf("permissions on custom resources are missing: %s; print them with pod-reloader roles --config %s, and bind them to the ServiceAccount of the installation",
		reference.Clauses(missing, maxNamed, referent.Permission.String), location)
}
