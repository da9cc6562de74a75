package apiserver

import (
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	authorizationGroup  = "authorization.k8s.io"
	authenticationGroup = "authentication.k8s.io"
)

var reviewKinds = map[string]string{
	"selfsubjectaccessreviews": "SelfSubjectAccessReview", "subjectaccessreviews": "SubjectAccessReview", "tokenreviews": "TokenReview",
}

// reviews answers the questions about permissions that clients ask the API server.
var reviews = map[string]func(*Server, *request) (answer, error){
	"/apis/" + authorizationGroup + "/v1/selfsubjectaccessreviews": (*Server).reviewSelf,
	"/apis/" + authorizationGroup + "/v1/subjectaccessreviews":     (*Server).reviewSubject,
	"/apis/" + authenticationGroup + "/v1/tokenreviews":            (*Server).reviewToken,
}

func (s *Server) reviewSelf(q *request) (answer, error) {
	var r authorizationv1.SelfSubjectAccessReview
	if err := q.decodeReview(&r); err != nil {
		return answer{}, err
	}
	r.APIVersion, r.Kind = authorizationGroup+"/v1", "SelfSubjectAccessReview"
	r.Status = s.access(q.call.Client, r.Spec.ResourceAttributes)
	return q.reviewed(&r, r.Kind)
}

func (s *Server) reviewSubject(q *request) (answer, error) {
	var r authorizationv1.SubjectAccessReview
	if err := q.decodeReview(&r); err != nil {
		return answer{}, err
	}
	r.APIVersion, r.Kind = authorizationGroup+"/v1", "SubjectAccessReview"
	r.Status = s.access(r.Spec.User, r.Spec.ResourceAttributes)
	return q.reviewed(&r, r.Kind)
}

// reviewToken takes every token for the name of its client.
func (s *Server) reviewToken(q *request) (answer, error) {
	var r authenticationv1.TokenReview
	if err := q.decodeReview(&r); err != nil {
		return answer{}, err
	}
	r.APIVersion, r.Kind = authenticationGroup+"/v1", "TokenReview"
	r.Status = authenticationv1.TokenReviewStatus{
		Authenticated: r.Spec.Token != "", User: authenticationv1.UserInfo{Username: r.Spec.Token},
	}
	return q.reviewed(&r, r.Kind)
}

// access asks Authorize as if the user sent the request. Paths that are no resources are allowed.
func (s *Server) access(user string, a *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	if s.options.Authorize == nil || a == nil {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	call := &world.Call{Client: user, Verb: a.Verb, Subresource: a.Subresource, Arrived: time.Now(), ArrivedVersion: s.store.now()}
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

func (q *request) reviewed(r message, kind string) (answer, error) {
	if !q.media.protobuf {
		return answer{status: http.StatusCreated, body: append(toJSON(r), '\n')}, nil
	}
	gvk := schema.GroupVersionKind{Group: authorizationGroup, Version: "v1", Kind: kind}
	if kind == "TokenReview" {
		gvk.Group = authenticationGroup
	}
	return answer{status: http.StatusCreated, body: envelope(gvk, marshal(r)), media: q.media}, nil
}
