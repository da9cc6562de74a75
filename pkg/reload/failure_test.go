package reload

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFailedWritesAreSortedByWhoMustAct(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cause := errors.New("cause")
	status := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: "text"}}
	}
	tests := map[string]struct {
		err         error
		soon, quiet bool
	}{
		"the API server is away":              {cause, true, true},
		"it restarts":                         {status(http.StatusServiceUnavailable), true, false},
		"it is busy":                          {apierrors.NewTooManyRequests("slow down", 1), true, false},
		"a webhook with Fail does not answer": {status(http.StatusInternalServerError), true, false},
		"another writer was faster":           {apierrors.NewConflict(resource, "web", cause), true, true},
		"the workload is gone":                {apierrors.NewNotFound(resource, "web"), true, true},
		"no right to write":                   {apierrors.NewForbidden(resource, "web", cause), false, false},
		"a policy denies it":                  {status(http.StatusUnprocessableEntity), false, false},
		"wrapped":                             {fmt.Errorf("poke: %w", apierrors.NewForbidden(resource, "web", cause)), false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failedWrite("ReloadFailed", tc.err)
			assert.Equal(t, tc.soon, got.soon, "passes by itself")
			assert.Equal(t, tc.quiet, got.quiet, "is no news for the user")
			assert.ErrorIs(t, got.err, tc.err)
		})
	}
}

func TestFailedPinIsALostRace(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	tests := map[string]struct {
		err  error
		lost bool
	}{
		"a test of the patch failed": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false), true},
		"the object is invalid":      {apierrors.NewInvalid(kind, "web", nil), false},
		"no right to write":          {apierrors.NewForbidden(resource, "web", errors.New("cause")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failedPin("ReloadFailed", tc.err)
			assert.Equal(t, tc.lost, got.soon)
			assert.Equal(t, tc.lost, got.quiet)
		})
	}
}

func TestConflictEventKeepsItsText(t *testing.T) {
	t.Parallel()
	one := failure{conflict: true, err: errors.New("the digest is aaaa now")}
	two := failure{conflict: true, err: errors.New("the digest is bbbb now")}
	assert.Equal(t, one.text(), two.text(), "another text is another Event")
	assert.Equal(t, "denied", failure{err: errors.New("denied")}.text())
}
