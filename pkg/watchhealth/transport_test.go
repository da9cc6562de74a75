package watchhealth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

const (
	list      = "/api/v1/secrets?resourceVersion=0"
	watch     = "/api/v1/secrets?watch=true"
	streaming = watch + "&sendInitialEvents=true"
	versioned = watch + "&resourceVersion=7"
	single    = "/api/v1/namespaces/shop/secrets/db"

	rollouts      = "/apis/argoproj.io/v1alpha1/rollouts?resourceVersion=0"
	watchRollouts = "/apis/argoproj.io/v1alpha1/rollouts?watch=true"
)

var (
	secrets   = watchhealth.Watch{Resource: "secrets"}
	errBroken = errors.New("connection reset by peer")
)

// server answers requests as a test says.
type server func(r *http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// status answers with a status and a body that ends.
func status(code int) server { return content(code, strings.NewReader("content")) }

func content(code int, body io.Reader) server {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: io.NopCloser(body)}, nil
	}
}

// hang takes a request and never answers.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// stream answers at once and then sends what comes out of a channel, until the request ends.
func stream(chunks <-chan string) server {
	return func(r *http.Request) (*http.Response, error) {
		here, there := io.Pipe()
		go func() {
			for {
				select {
				case chunk := <-chunks:
					_, _ = io.WriteString(there, chunk)
				case <-r.Context().Done():
					_ = there.CloseWithError(r.Context().Err())
					return
				}
			}
		}()
		return &http.Response{StatusCode: http.StatusOK, Body: here}, nil
	}
}

// endless answers with a body that goes on for ever.
func endless(r *http.Request) (*http.Response, error) {
	chunks := make(chan string)
	go func() {
		for r.Context().Err() == nil {
			select {
			case chunks <- "padding":
			case <-r.Context().Done():
			}
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
		}
	}()
	return stream(chunks)(r)
}

// client sends requests through a Monitor.
type client struct {
	t       *testing.T
	monitor *watchhealth.Monitor
}

func newClient(t *testing.T) client {
	t.Helper()
	return client{t: t, monitor: &watchhealth.Monitor{}}
}

func (c client) send(ctx context.Context, url string, s server) (*http.Response, error) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api"+url, http.NoBody)
	require.NoError(c.t, err)
	return c.monitor.Wrap(s).RoundTrip(r)
}

// do sends a request and reads the response to its end.
func (c client) do(url string, s server) error {
	c.t.Helper()
	return c.doWith(c.t.Context(), url, s)
}

func (c client) doWith(ctx context.Context, url string, s server) error {
	c.t.Helper()
	response, err := c.send(ctx, url, s)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// status returns that of the one watch that there is.
func (c client) status() watchhealth.Status {
	c.t.Helper()
	all := c.monitor.Statuses()
	require.Len(c.t, all, 1)
	return all[0]
}

func TestAnswersDecideTheHealthOfAWatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url    string
		server server
		want   watchhealth.Reason // empty: healthy
	}{
		"watch opened":                   {watch, status(200), ""},
		"list":                           {list, status(200), ""},
		"watch forbidden":                {watch, status(403), watchhealth.Refused},
		"list forbidden":                 {list, status(403), watchhealth.Refused},
		"streaming list forbidden":       {streaming, status(403), watchhealth.Refused},
		"credentials expired":            {watch, status(401), watchhealth.Refused},
		"server error":                   {list, status(500), watchhealth.Failed},
		"version too old":                {versioned, status(410), ""},
		"version of a list too old":      {list[:len(list)-1] + "7", status(410), ""},
		"watch gone":                     {watch, status(410), watchhealth.Failed},
		"list gone":                      {list, status(410), watchhealth.Failed},
		"streaming list gone":            {streaming, status(410), watchhealth.Failed},
		"not found, says a proxy":        {list, status(404), watchhealth.Failed},
		"streaming list not found":       {streaming, status(404), watchhealth.Failed},
		"streaming lists are not served": {streaming, status(422), ""},
		"malformed watch":                {watch, status(422), watchhealth.Failed},
		"streaming lists are unknown":    {streaming, status(400), ""},
		"watch that is a bad request":    {watch, status(400), watchhealth.Failed},
		"broken connection":              {watch, func(*http.Request) (*http.Response, error) { return nil, errBroken }, watchhealth.Failed},
		"no answer":                      {watch, hang, watchhealth.NoAnswer},
		"list without answer":            {list, hang, watchhealth.NoAnswer},
		"list without end":               {list, endless, watchhealth.Incomplete},
		"list that is cut":               {list, content(200, io.MultiReader(strings.NewReader("half"), broken{})), watchhealth.Incomplete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t)
				began := time.Now()
				err := client.do(c.url, c.server)
				got := client.status()
				assert.Equal(t, c.want, got.Reason)
				assert.Equal(t, c.want == "", got.Healthy())
				assert.Equal(t, c.want != "", client.monitor.Failing("secrets", "shop"))
				if c.want == "" {
					assert.Empty(t, client.monitor.Failures())
					return
				}
				assert.Equal(t, began, got.Since, "it fails since it was asked for")
				assert.NotEmpty(t, got.Detail)
				assert.Equal(t, map[watchhealth.Failure]uint64{{Resource: "secrets", Reason: c.want}: 1}, client.monitor.Failures())
				if c.want == watchhealth.NoAnswer {
					assert.ErrorContains(t, err, "did not answer within")
				}
			})
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRequestsAreGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url    string
		server server
		after  time.Duration
	}{
		"watch without answer":    {watch, hang, 20 * time.Second},
		"list without answer":     {list, hang, 70 * time.Second},
		"read without answer":     {single, hang, 70 * time.Second},
		"list that stops":         {list, stream(nil), time.Minute},
		"read that stops":         {single, stream(nil), time.Minute},
		"watch that says nothing": {watch, stream(nil), 2 * time.Minute},
		"list without end":        {list, endless, 5 * time.Minute},
		"read without end":        {single, endless, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_ = newClient(t).do(c.url, c.server)
				assert.Equal(t, c.after, time.Since(began))
			})
		})
	}
}

func TestListAloneDoesNotHealAWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do(watch, status(403)))
		since := client.status().Since
		<-time.After(time.Minute)
		require.NoError(t, client.do(list, status(200)))
		assert.Equal(t, since, client.status().Since, "list is allowed, watch is not")
		require.NoError(t, client.do(watch, status(403)))
		assert.Equal(t, since, client.status().Since)
		require.NoError(t, client.do(watch, status(200)))
		assert.True(t, client.status().Healthy(), "a watch is accepted")
	})
}

func TestListsThatNoWatchFollowsAreUnusable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do(list, status(200)))
		require.NoError(t, client.do(list+"&continue=x", status(200)))
		require.NoError(t, client.do(streaming, status(422)))
		assert.True(t, client.status().Healthy(), "pages and the attempt at a streaming list are no second list")
		require.NoError(t, client.do(list, status(200)))
		assert.Equal(t, watchhealth.Incomplete, client.status().Reason)
		require.NoError(t, client.do(watch, status(200)))
		require.NoError(t, client.do(list, status(200)))
		assert.True(t, client.status().Healthy(), "a watch was opened in between")
	})
}

func TestListOfWhichTheRestIsNotReadIsUnusable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		for range 2 {
			response, err := client.send(t.Context(), list, status(200))
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
		assert.Equal(t, watchhealth.Incomplete, client.status().Reason)
	})
}

func TestOnlyWatchesAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do(single, status(403)))
		require.NoError(t, client.do("/api/v1/events", status(403)))
		assert.Empty(t, client.monitor.Statuses(), "the caller of a list of its own gets the error")
		require.NoError(t, client.do("/api/v1/events?watch=true", status(200)))
		require.NoError(t, client.do("/api/v1/events", status(403)))
		assert.False(t, client.monitor.Statuses()[0].Healthy(), "the resource is watched, and its list is refused")
	})
}

func TestCallerThatLeavesIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.send(ctx, watch, hang) //nolint:bodyclose // there is none
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, client.status().Healthy(), "the caller has ended the request")
	})
}

func TestWatchOfANamespaceFailsForThatNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do("/api/v1/namespaces/shop/secrets?watch=true", status(403)))
		assert.True(t, client.monitor.Failing("secrets", "shop"), "its watch is refused")
		assert.False(t, client.monitor.Failing("secrets", "bank"), "another namespace has no watch that fails")
		assert.False(t, client.monitor.Failing("configmaps", "shop"), "another resource has no watch that fails")
	})
}

func TestWatchThatWasGivenUpIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		require.NoError(t, client.do(watch, status(403)))
		<-time.After(4 * time.Minute)
		assert.Len(t, client.monitor.Statuses(), 1, "reflectors retry within a minute or two")
		response, err := client.send(t.Context(), watch, status(200))
		require.NoError(t, err)
		<-time.After(time.Hour)
		assert.Len(t, client.monitor.Statuses(), 1, "it is open")
		require.NoError(t, response.Body.Close())
		<-time.After(6 * time.Minute)
		assert.Empty(t, client.monitor.Statuses())
	})
}

func TestStatusesAreSorted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t)
		for _, url := range []string{"/apis/apps/v1/deployments", "/api/v1/namespaces/b/secrets", "/api/v1/namespaces/a/secrets", "/api/v1/configmaps"} {
			require.NoError(t, client.do(url+"?watch=true", status(200)))
		}
		var names []string
		for _, s := range client.monitor.Statuses() {
			names = append(names, s.String())
		}
		assert.Equal(t, []string{"configmaps", "deployments.apps", "secrets in namespace a", "secrets in namespace b"}, names)
	})
}

// A resource is uninstalled while its watch fails: what is answered then says that there is nothing to see. The API server always has its
// own resources.
func TestAnUninstalledResourceIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path    string
		healthy bool
	}{
		"custom resource":       {"/apis/argoproj.io/v1alpha1/rollouts", true},
		"of one namespace":      {"/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts", true},
		"Secrets":               {"/api/v1/secrets", false},
		"Deployments":           {"/apis/apps/v1/deployments", false},
		"Jobs of one namespace": {"/apis/batch/v1/namespaces/shop/jobs", false},
	} {
		for failure, failing := range map[string]server{"forbidden": status(403), "unavailable": status(503), "no answer": hang} {
			t.Run(name+", "+failure, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					client := newClient(t)
					_ = client.do(c.path+"?watch=true", failing)
					require.False(t, client.status().Healthy(), "the watch fails: %s", failure)
					_ = client.do(c.path+"?resourceVersion=0", status(404))
					got := client.status()
					assert.Equal(t, c.healthy, got.Healthy())
					assert.Equal(t, !c.healthy, client.monitor.Failing(got.Resource, "shop"))
				})
			})
		}
	}
}
