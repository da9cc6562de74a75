package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// guard lets only those callers pass whom the API server knows by their bearer token and allows to get the path. It asks
// for each request, as seldom as metrics are scraped. (controller-runtime has such a filter, which would link half of
// the API server into the program.)
type guard struct {
	next   http.Handler
	tokens tokenReviewer
	access accessReviewer
	log    logr.Logger
}

type tokenReviewer interface {
	Create(context.Context, *authenticationv1.TokenReview, metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

type accessReviewer interface {
	Create(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// protect puts a guard before a handler.
func protect(next http.Handler, config *rest.Config, client *http.Client, log logr.Logger) (http.Handler, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for token reviews: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for access reviews: %w", err)
	}
	return &guard{next: next, tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), log: log}, nil
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, err := g.authenticate(r)
	if err != nil {
		g.refuse(w, r, http.StatusUnauthorized, err)
		return
	}
	if err := g.authorize(r, user); err != nil {
		g.refuse(w, r, http.StatusForbidden, err)
		return
	}
	g.next.ServeHTTP(w, r)
}

// refuse says no, and the reason to the log only.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, reason error) {
	g.log.V(1).Info("Refused a request for metrics", "path", r.URL.Path, "status", status, "reason", reason.Error())
	http.Error(w, http.StatusText(status), status)
}

func (g *guard) authenticate(r *http.Request) (authenticationv1.UserInfo, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return authenticationv1.UserInfo{}, errors.New("no bearer token")
	}
	review, err := g.tokens.Create(r.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authenticationv1.UserInfo{}, fmt.Errorf("review the token: %w", err)
	case !review.Status.Authenticated:
		return authenticationv1.UserInfo{}, errors.New("the API server does not know the token")
	}
	return review.Status.User, nil
}

func (g *guard) authorize(r *http.Request, user authenticationv1.UserInfo) error {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review, err := g.access.Create(r.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("review the access: %w", err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s may not %s %s", user.Username, strings.ToLower(r.Method), r.URL.Path)
	}
	return nil
}
