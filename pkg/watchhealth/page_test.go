package watchhealth_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// The client asks for the whole list again then. Its list was not invalid: it was not complete.
func TestListAfterAPageThatFailsIsNoSecondOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page server
		want watchhealth.Reason // empty: healthy
	}{
		"expired":           {status(410), ""},
		"unavailable":       {status(503), watchhealth.Failed},
		"broken connection": {func(*http.Request) (*http.Response, error) { return nil, errBroken }, watchhealth.Failed},
		"no answer":         {hang, watchhealth.NoAnswer},
		"cut":               {content(200, io.MultiReader(strings.NewReader("half"), broken{})), watchhealth.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t)
				require.NoError(t, client.do(list, status(200)))
				_ = client.do(list+"&continue=x", c.page)
				failed, counts := client.status(), client.monitor.Failures()
				assert.Equal(t, c.want, failed.Reason)
				require.NoError(t, client.do(list, status(200)))
				assert.Equal(t, failed, client.status(), "the page is what fails")
				assert.Equal(t, counts, client.monitor.Failures())
				require.NoError(t, client.do(watch, status(200)))
				assert.True(t, client.status().Healthy(), "a watch is accepted")
			})
		})
	}
}

// A custom resource is uninstalled between two pages: nothing was invalid.
func TestListAfterAPageThatIsNotServedIsNoSecondOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do(rollouts, status(200)))
		require.NoError(t, client.do(rollouts+"&continue=x", status(404)))
		require.NoError(t, client.do(rollouts, status(404)))
		assert.True(t, client.status().Healthy(), "one list is not served, and that is no proof")
		assert.Empty(t, client.monitor.Failures())
	})
}

// The configuration of custom resources changes between two pages: the list of the client before was given up, and not invalid.
func TestListOfAnotherClientIsNoSecondOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next func(context.Context) context.Context
		want watchhealth.Reason // empty: healthy
	}{
		"another client":  {watchhealth.NewClient, ""},
		"the same client": {func(ctx context.Context) context.Context { return ctx }, watchhealth.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, first := newClient(t), watchhealth.NewClient(t.Context())
			require.NoError(t, client.doWith(first, list, status(200)))
			next := c.next(first)
			require.NoError(t, client.doWith(next, streaming, status(422)))
			require.NoError(t, client.doWith(next, list, status(200)))
			assert.Equal(t, c.want, client.status().Reason)
		})
	}
}
