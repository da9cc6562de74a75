package watchhealth_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// Whatever comes between: the next watch may be as silent as the last one.
func TestSilentWatchFailsUntilItDeliversWhateverComesBetween(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]struct {
		url    string
		server server
	}{
		"no answer":         {watch, hang},
		"broken connection": {watch, func(*http.Request) (*http.Response, error) { return nil, errBroken }},
		"forbidden":         {watch, status(403)},
		"server error":      {watch, status(503)},
		"version too old":   {watch, status(410)},
		"list that is cut":  {list, content(200, io.MultiReader(strings.NewReader("half"), broken{}))},
		"list":              {list, status(200)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t)
				require.NoError(t, client.do(watch, stream(nil)))
				since := client.status().Since
				_ = client.do(between.url, between.server)
				chunks := make(chan string)
				response, err := client.send(t.Context(), watch, stream(chunks))
				require.NoError(t, err)
				defer func() { assert.NoError(t, response.Body.Close()) }()
				got := client.status()
				assert.Equal(t, since, got.Since, "it has delivered nothing since")
				assert.Equal(t, watchhealth.Silent, got.Reason, "it was opened: what came between is over")
				assert.Contains(t, got.Detail, "not even a bookmark")
				go func() { _, _ = io.Copy(io.Discard, response.Body) }()
				chunks <- "bookmark"
				synctest.Wait()
				assert.True(t, client.status().Healthy())
				require.NoError(t, client.do(watch, status(403)))
				opened, err := client.send(t.Context(), watch, stream(nil))
				require.NoError(t, err)
				defer func() { assert.NoError(t, opened.Body.Close()) }()
				assert.True(t, client.status().Healthy(), "it was not silent since it has delivered")
			})
		})
	}
}

// A resource that is installed again has new watches.
func TestSilenceIsForgottenWithTheResource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do(watchRollouts, stream(nil)))
		require.NoError(t, client.do(rollouts, status(404)))
		response, err := client.send(t.Context(), watchRollouts, stream(nil))
		require.NoError(t, err)
		defer func() { assert.NoError(t, response.Body.Close()) }()
		assert.True(t, client.status().Healthy())
	})
}
