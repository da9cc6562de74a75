package watchhealth_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
		"version too old":   {versioned, status(410)},
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
				assert.True(t, client.status().Healthy(), "the watch has delivered something")
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
		assert.True(t, client.status().Healthy(), "the silence was that of the resource before")
	})
}

func TestSilentWatchEndsLikeAnyOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		began := time.Now()
		require.NoError(t, client.do(watch, stream(nil)), "the reflector opens the next one where this one was")
		got := client.status()
		assert.Equal(t, watchhealth.Silent, got.Reason)
		assert.Equal(t, began, got.Since)
	})
}

func TestSilentWatchIsHealthyOnceItDelivers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do(watch, stream(nil)))
		chunks := make(chan string)
		response, err := client.send(t.Context(), watch, stream(chunks))
		require.NoError(t, err)
		defer func() { assert.NoError(t, response.Body.Close()) }()
		assert.False(t, client.status().Healthy(), "it was opened before, too")
		go func() { _, _ = io.Copy(io.Discard, response.Body) }()
		chunks <- "bookmark"
		synctest.Wait()
		assert.True(t, client.status().Healthy(), "the watch has delivered something")
	})
}

func TestWatchThatDeliversBookmarksGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		chunks := make(chan string)
		response, err := client.send(ctx, watch, stream(chunks))
		require.NoError(t, err)
		defer func() { assert.NoError(t, response.Body.Close()) }()
		var ended atomic.Bool
		go func() {
			_, _ = io.Copy(io.Discard, response.Body)
			ended.Store(true)
		}()
		for range 10 {
			<-time.After(119 * time.Second)
			chunks <- "bookmark"
		}
		synctest.Wait()
		assert.False(t, ended.Load(), "the watch is never silent for two minutes")
		assert.True(t, client.status().Healthy(), "the watch is never silent for two minutes")
		cancel()
		synctest.Wait()
		assert.True(t, ended.Load(), "its client has cancelled it")
		assert.True(t, client.status().Healthy(), "its client has ended it")
	})
}

// A client that is busy reads nothing for a while. The API server is not to blame.
func TestSlowReaderIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		response, err := client.send(t.Context(), list, status(200))
		require.NoError(t, err)
		<-time.After(time.Hour)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.True(t, client.status().Healthy(), "the answer has come, and is read late")
	})
}

// After a silence, a client asks for a list of one object first. While the API server has too many requests, no watch is open.
func TestWatchThatDoesNotGoOnBecauseOfTooManyRequestsFails(t *testing.T) {
	t.Parallel()
	const first = "/api/v1/secrets?limit=1"
	for name, c := range map[string]struct {
		url     string
		code    int
		healthy bool
	}{
		"too many requests":             {url: first, code: 429},
		"of another resource":           {url: "/api/v1/configmaps?limit=1", code: 429, healthy: true},
		"another error: the watch goes": {url: first, code: 500, healthy: true},
		"it is answered":                {url: first, code: 200, healthy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t)
				require.NoError(t, client.do(watch, status(200)))
				began := time.Now()
				for range 20 {
					require.NoError(t, client.do(c.url, status(c.code)))
					<-time.After(30 * time.Second)
				}
				if c.healthy {
					assert.False(t, client.monitor.AnyFailing(), "no watch waits because of too many requests")
					return
				}
				const detail = "the API server answers 429 Too Many Requests"
				want := watchhealth.Status{Watch: secrets, Since: began, Reason: watchhealth.Failed, Detail: detail}
				assert.Equal(t, want, client.status())
				response, err := client.send(t.Context(), watch, stream(nil))
				require.NoError(t, err)
				defer func() { assert.NoError(t, response.Body.Close()) }()
				assert.True(t, client.status().Healthy(), "a watch is accepted")
			})
		})
	}
}
