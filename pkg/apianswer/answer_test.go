package apianswer_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
)

func TestNotFound(t *testing.T) {
	t.Parallel()
	const (
		status   = `{"apiVersion":"v1","kind":"Status","status":"Failure","code":404,"reason":"NotFound","message":"configmaps \"app\" not found"}`
		noReason = `{"apiVersion":"v1","kind":"Status","status":"Failure","code":404,"message":"no route"}`
	)
	for name, tc := range map[string]struct {
		reason, contentType, body string
		code                      int
		want                      bool
	}{
		"of the API server": {"It says so in its own words.", "application/json", status, http.StatusNotFound, true},
		"default backend":   {"A load balancer knows no way.", "text/plain", "default backend - 404", http.StatusNotFound, false},
		"a page":            {"So says a proxy.", "text/html", "<h1>404 Not Found</h1>", http.StatusNotFound, false},
		"without a body":    {"The API server always sends a Status.", "", "", http.StatusNotFound, false},
		"JSON, no Status":   {"Not every JSON is a Status.", "application/json", `{"message":"no route"}`, http.StatusNotFound, false},
		"without a reason":  {"The API server always sends one.", "application/json", noReason, http.StatusNotFound, false},
		"another error":     {"A refusal says nothing of the object.", "application/json", "{}", http.StatusForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.contentType)
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(server.Close)
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop").Get(t.Context(), "app", metav1.GetOptions{})
			require.Error(t, err)
			assert.Equal(t, tc.want, apianswer.NotFound(err), tc.reason)
			assert.Equal(t, tc.want, apianswer.NotFound(fmt.Errorf("read: %w", err)), "wrapped")
		})
	}
	for name, err := range denials(apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "app")) {
		assert.False(t, apianswer.NotFound(err), "a webhook denied the request, %s", name)
	}
	assert.False(t, apianswer.NotFound(nil), "there is no error")
	assert.False(t, apianswer.NotFound(errors.New("no connection")), "there is no answer")
}

// denials are the errors of requests that an admission webhook denied: it gave a code only, or the whole Status of a request of its own.
func denials(ofWebhook *apierrors.StatusError) map[string]error {
	const by = `admission webhook "w.example.com" denied the request: `
	code := metav1.Status{Status: metav1.StatusFailure, Code: ofWebhook.ErrStatus.Code, Message: by + "not in the cache"}
	whole := ofWebhook.Status()
	whole.Message = by + whole.Message
	return map[string]error{"by code": &apierrors.StatusError{ErrStatus: code}, "by Status": &apierrors.StatusError{ErrStatus: whole}}
}

func TestNamespaceGone(t *testing.T) {
	t.Parallel()
	events := schema.GroupResource{Resource: "events"}
	terminating := apierrors.NewForbidden(events, "a", io.EOF)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"the namespace is being deleted": {terminating, true},
		"the namespace is deleted":       {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), true},
		"a permission is missing":        {apierrors.NewForbidden(events, "a", io.EOF), false},
		"of a proxy":                     {apierrors.NewGenericServerResponse(http.StatusNotFound, "post", events, "a", "no route", 0, true), false},
		"another object is not found":    {apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "app"), false},
		"created":                        {nil, false},
	} {
		assert.Equal(t, tc.want, apianswer.NamespaceGone(tc.err), name)
		assert.Equal(t, tc.want, apianswer.NamespaceGone(fmt.Errorf("create: %w", tc.err)), "%s, wrapped", name)
	}
	for _, ofWebhook := range []*apierrors.StatusError{terminating, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "other")} {
		for name, err := range denials(ofWebhook) {
			assert.False(t, apianswer.NamespaceGone(err), "a webhook denied the request, %s: %v", name, err)
		}
	}
}

func TestUnauthorized(t *testing.T) {
	t.Parallel()
	secrets := schema.GroupResource{Resource: "secrets"}
	authorizer := apierrors.NewForbidden(secrets, "", io.EOF)
	authorizer.ErrStatus.Message = `secrets is forbidden: User "x" cannot create resource "secrets" in API group "" in the namespace "shop"`
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a permission is missing": {authorizer, true},
		"the token is invalid":    {apierrors.NewUnauthorized("x"), true},
		"a quota is full":         {apierrors.NewForbidden(secrets, "key", errors.New("exceeded quota: objects")), false},
		"no answer":               {io.ErrUnexpectedEOF, false},
	} {
		assert.Equal(t, tc.want, apianswer.Unauthorized(tc.err), name)
		assert.Equal(t, tc.want, apianswer.Unauthorized(fmt.Errorf("create: %w", tc.err)), "%s, wrapped", name)
	}
	for _, ofWebhook := range []*apierrors.StatusError{authorizer, apierrors.NewUnauthorized("expired")} {
		for name, err := range denials(ofWebhook) {
			assert.False(t, apianswer.Unauthorized(err), "a webhook has no permission, %s: %v", name, err)
		}
	}
}

func TestAlreadyExists(t *testing.T) {
	t.Parallel()
	events := schema.GroupResource{Resource: "events"}
	assert.True(t, apianswer.AlreadyExists(fmt.Errorf("write: %w", apierrors.NewAlreadyExists(events, "a"))), "a wrapped answer")
	assert.False(t, apianswer.AlreadyExists(apierrors.NewConflict(events, "a", io.EOF)), "a conflict is another answer")
	for name, err := range denials(apierrors.NewAlreadyExists(events, "a")) {
		assert.False(t, apianswer.AlreadyExists(err), "a webhook denied the request, %s", name)
	}
}

func TestMayBeStored(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":           {io.ErrUnexpectedEOF, true},
		"an internal error":   {apierrors.NewInternalError(io.EOF), true},
		"a gateway's timeout": {apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "patch", pods, "a", "", 0, true), true},
		"a refusal":           {apierrors.NewForbidden(pods, "a", io.EOF), false},
		"a conflict":          {apierrors.NewConflict(pods, "a", io.EOF), false},
	} {
		assert.Equal(t, tc.want, apianswer.MayBeStored(tc.err), name)
		assert.Equal(t, tc.want, apianswer.MayBeStored(fmt.Errorf("write: %w", tc.err)), "%s, wrapped", name)
	}
}

func TestMayBeStart(t *testing.T) {
	t.Parallel()
	assert.True(t, apianswer.MayBeStart(0), "the program has only just begun")
	assert.True(t, apianswer.MayBeStart(7*time.Second-1), "the last nanosecond of the start")
	assert.False(t, apianswer.MayBeStart(7*time.Second), "the start is over")
}
