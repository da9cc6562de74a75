package watchhealth_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

func TestResourceThatCannotBeLookedUpIsAFailure(t *testing.T) {
	t.Parallel()
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "any"}}
	for name, c := range map[string]struct {
		resource string
		err      error
		want     watchhealth.Reason // empty: nothing is reported
	}{
		"forbidden":             {"deployments.apps", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no permission")), watchhealth.Refused},
		"credentials expired":   {"deployments.apps", fmt.Errorf("discover: %w", apierrors.NewUnauthorized("expired")), watchhealth.Refused},
		"unavailable":           {"rollouts.argoproj.io", apierrors.NewServiceUnavailable("away"), watchhealth.Failed},
		"not installed":         {"rollouts.argoproj.io", noMatch, ""},
		"built in, not matched": {"deployments.apps", noMatch, watchhealth.Failed},
		"found in vain":         {"rollouts.argoproj.io", watchhealth.ErrContradicted, watchhealth.Failed},
		"found":                 {"deployments.apps", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, began := newClient(t), time.Now()
				about := watchhealth.Watch{Resource: c.resource, Namespace: "shop"}
				client.monitor.Discovered(about, c.err)
				if c.want == "" {
					assert.Empty(t, client.monitor.Statuses())
					assert.False(t, client.monitor.AnyFailing(), "the resource is not installed")
					return
				}
				<-time.After(30 * time.Second)
				client.monitor.Discovered(about, c.err)
				got := client.status()
				assert.Contains(t, got.Detail, c.err.Error())
				assert.Equal(t, watchhealth.Status{Watch: about, Since: began, Reason: c.want, Detail: got.Detail}, got)
				assert.True(t, client.monitor.Failing(c.resource, "shop"), "its watch cannot begin")
				assert.True(t, client.monitor.AnyFailing(), "one watch fails")
				client.monitor.Discovered(about, nil)
				assert.True(t, client.status().Healthy(), "the lookup succeeds")
				assert.False(t, client.monitor.AnyFailing(), "no watch fails")
			})
		})
	}
}

func TestLookupThatFindsTheResourceIsNotCalledAFailedOne(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	client.monitor.Discovered(watchhealth.Watch{Resource: "rollouts.argoproj.io"}, watchhealth.ErrContradicted)
	assert.Equal(t, "the API server lists it in its discovery, and answers its lists or watches with 404 Not Found", client.status().Detail)
}

func TestFailedLookupIsOverOnceTheResourceIsUninstalled(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	about := watchhealth.Watch{Resource: "rollouts.argoproj.io"}
	client.monitor.Discovered(about, errors.New("away"))
	require.False(t, client.status().Healthy(), "the lookup has failed")
	client.monitor.Discovered(about, &meta.NoKindMatchError{})
	assert.True(t, client.status().Healthy(), "a resource that is not installed needs no watch")
}

// The API server answers 404 for the resource that was watched, while the kind is served otherwise.
func TestFailedLookupOutlastsListsOfWhatIsNotServed(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	about := watchhealth.Watch{Resource: "rollouts.argoproj.io"}
	client.monitor.Discovered(about, errors.New("served in another version"))
	response, err := client.send(t.Context(), "/apis/argoproj.io/v1alpha1/rollouts?watch=true", status(http.StatusNotFound))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.False(t, client.status().Healthy(), "a 404 does not explain why the lookup failed")
	response, err = client.send(t.Context(), "/apis/argoproj.io/v1alpha1/rollouts?watch=true", status(http.StatusOK))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.True(t, client.status().Healthy(), "the watch works")
}
