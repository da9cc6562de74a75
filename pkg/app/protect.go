package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
)

// guard lets only those callers pass whom the API server knows by their bearer token and allows to get the path. It asks
// for each request, for a few at a time: a scraper asks seldom, but any pod can reach the port. (controller-runtime has
// such a filter, which would link half of the API server into the program.)
type guard struct {
	next   http.Handler
	tokens tokenReviewer
	access accessReviewer
	asking *fairlimit.Limit
	log    logr.Logger
}

// The reviews for callers share the API server's patience with the program itself. A caller is an address.
const (
	// reviewing is how many callers' requests are reviewed at a time, two of them of one caller, of whom so many more wait.
	reviewing, reviewingOfACaller, waitingForReview = 8, 2, 8
	// reviewTimeout bounds the wait and the reviews of one request.
	reviewTimeout = 5 * time.Second
)

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
	return &guard{next: next, tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), asking: newReviewing(), log: log}, nil
}

func newReviewing() *fairlimit.Limit {
	return fairlimit.NewBounded(reviewing, reviewingOfACaller, waitingForReview)
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, err := g.review(r); err != nil {
		g.refuse(w, r, status, err)
		return
	}
	g.next.ServeHTTP(w, r)
}

// review returns why a request is refused, with the status of the answer.
func (g *guard) review(r *http.Request) (status int, err error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return http.StatusUnauthorized, errors.New("no bearer token")
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	release, err := g.asking.Acquire(ctx, fairlimit.CallerOf(r.RemoteAddr), 1)
	if err != nil {
		return http.StatusTooManyRequests, fmt.Errorf("wait for the reviews of other requests: %w", err)
	}
	defer release()
	user, err := g.authenticate(ctx, token)
	if err != nil {
		return http.StatusUnauthorized, err
	}
	if err := g.authorize(ctx, r, user); err != nil {
		return http.StatusForbidden, err
	}
	return 0, nil
}

// refuse says no, and the reason to the log only.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, reason error) {
	g.log.V(1).Info("refused a request for metrics", "path", r.URL.Path, "status", status, "error", reason.Error())
	http.Error(w, http.StatusText(status), status)
}

func (g *guard) authenticate(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	review, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{
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

func (g *guard) authorize(ctx context.Context, r *http.Request, user authenticationv1.UserInfo) error {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review, err := g.access.Create(ctx, &authorizationv1.SubjectAccessReview{
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
