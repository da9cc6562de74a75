package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokens knows one token; access lets its user get /metrics.
type (
	tokens struct{ err error }
	access struct{ err error }
)

func (f tokens) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	switch review.Spec.Token {
	case "good":
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "prometheus"}}
	case "unauthorized":
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "mallory"}}
	}
	return review, f.err
}

func (f access) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	asked := review.Spec.NonResourceAttributes
	review.Status.Allowed = review.Spec.User == "prometheus" && asked.Path == "/metrics" && asked.Verb == "get"
	return review, f.err
}

// noContent is the handler behind a guard.
var noContent = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

func TestGuard(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	tests := map[string]struct {
		header string
		guard  guard
		status int
		why    string
	}{
		"allowed":         {"Bearer good", guard{tokens: tokens{}, access: access{}}, http.StatusNoContent, "known and allowed"},
		"no token":        {"", guard{}, http.StatusUnauthorized, "the API server is not even asked"},
		"empty token":     {"Bearer ", guard{}, http.StatusUnauthorized, "the API server is not even asked"},
		"basic":           {"Basic good", guard{}, http.StatusUnauthorized, "no bearer token"},
		"unknown":         {"Bearer bad", guard{tokens: tokens{}}, http.StatusUnauthorized, "the API server does not know the token"},
		"not allowed":     {"Bearer unauthorized", guard{tokens: tokens{}, access: access{}}, http.StatusForbidden, "no rule allows the user"},
		"no token review": {"Bearer good", guard{tokens: tokens{down}}, http.StatusUnauthorized, "closed when in doubt"},
		"no review":       {"Bearer good", guard{tokens: tokens{}, access: access{down}}, http.StatusForbidden, "closed when in doubt"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.guard.next, tt.guard.asking, tt.guard.log = noContent, newReviewing(), logr.Discard()
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			request.Header.Set("Authorization", tt.header)
			recorder := httptest.NewRecorder()
			tt.guard.ServeHTTP(recorder, request)
			assert.Equal(t, tt.status, recorder.Code, tt.why)
			assert.NotContains(t, recorder.Body.String(), "mallory", "reasons go to the log")
		})
	}
}

// silent answers no review until the request ends.
type silent struct{ asked chan struct{} }

func (s silent) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return review, ctx.Err()
}

// Any pod can send requests with tokens: what they cost the API server is bounded, and a scraper's request is reviewed among them.
func TestReviewsOfOneCallerAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := silent{make(chan struct{}, 100)}
		g := &guard{next: noContent, tokens: slow, access: access{}, asking: newReviewing(), log: logr.Discard()}
		ask := func(address string) int {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			request.RemoteAddr = address
			request.Header.Set("Authorization", "Bearer good")
			recorder := httptest.NewRecorder()
			g.ServeHTTP(recorder, request)
			return recorder.Code
		}
		statuses := make(chan int, 50)
		for i := range 50 {
			go func() { statuses <- ask("10.0.0.1:" + strconv.Itoa(1000+i)) }()
		}
		synctest.Wait()
		assert.Len(t, slow.asked, 2, "reviews at a time for one caller")
		assert.Len(t, statuses, 40, "two are reviewed, eight wait")
		assert.Equal(t, http.StatusTooManyRequests, <-statuses)
		go func() { statuses <- ask("10.0.0.2:1000") }()
		synctest.Wait()
		assert.Len(t, slow.asked, 3, "another caller does not wait behind them")
		<-time.After(reviewTimeout)
		synctest.Wait()
		assert.Len(t, statuses, 50, "none waits for longer than the time for a review")
	})
}
