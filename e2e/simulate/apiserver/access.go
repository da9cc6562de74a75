package apiserver

import (
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	authorizationGroup = "authorization.k8s.io"
	accessReviews      = "selfsubjectaccessreviews"
	accessReview       = "SelfSubjectAccessReview"
	accessReviewPath   = "/apis/" + authorizationGroup + "/v1/" + accessReviews
)

// reviewAccess answers which permissions a client has itself.
func (s *Server) reviewAccess(q *request) (answer, error) {
	var r authorizationv1.SelfSubjectAccessReview
	if err := q.decodeReview(&r); err != nil {
		return answer{}, err
	}
	r.APIVersion, r.Kind = authorizationGroup+"/v1", accessReview
	r.Status = s.access(q.call.Client, r.Spec.ResourceAttributes)
	if !q.media.protobuf {
		return answer{status: http.StatusCreated, body: append(toJSON(&r), '\n')}, nil
	}
	gvk := schema.GroupVersionKind{Group: authorizationGroup, Version: "v1", Kind: accessReview}
	return answer{status: http.StatusCreated, body: envelope(gvk, marshal(&r)), media: q.media}, nil
}

// access asks Authorize as if the client sent the request. Paths that are no resources are allowed.
func (s *Server) access(client string, a *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	if s.options.Authorize == nil || a == nil {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	call := &world.Call{Client: client, Verb: a.Verb, Subresource: a.Subresource, Arrived: time.Now(), ArrivedVersion: s.store.now()}
	call.Key = world.Key{Resource: world.Resource{Group: a.Group, Version: a.Version, Plural: a.Resource}, Namespace: a.Namespace, Name: a.Name}
	for _, k := range s.kinds {
		if k.Group == a.Group && k.Plural == strings.ToLower(a.Resource) {
			call.Key.Resource = k.Resource
		}
	}
	if denied := s.options.Authorize(call); denied != nil {
		return authorizationv1.SubjectAccessReviewStatus{Reason: denied.Message}
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
}

func (q *request) decodeReview(into message) error {
	var err error
	if q.call.ContentType == protobufType {
		err = decodeMessage(q.call.Body, into)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(q.call.Body, into)
	}
	if err != nil {
		return apierrors.NewBadRequest("decode the review: " + err.Error())
	}
	return nil
}
