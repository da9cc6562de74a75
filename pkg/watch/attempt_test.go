package watch_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func TestRequestWithoutAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault  faults
		within time.Duration
		want   string
	}{
		"streamed list": {faults{hang: true}, 31 * time.Second, "not answered within 30s"},
		"list":          {faults{hang: true, noStreamList: true}, 151 * time.Second, "not answered within 2m0s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				s := newServer(t, object("a"))
				s.Fault(c.fault)
				bulk := startBulk(t, s, watch.Config{OnSyncComplete: calls.onSync})
				single := startSingle(t, s, calls.single("a"))
				pass(c.within)
				for _, last := range []func() (time.Time, error){bulk.LastWatchError, single.LastWatchError} {
					_, err := last()
					require.ErrorContains(t, err, c.want)
				}
				assert.Empty(t, calls.read())
				s.Fault(faults{})
				pass(4 * time.Minute)
				assert.ElementsMatch(t, []string{"synced 1 of 1", "synced a@1001"}, calls.read(), "it is tried again")
			})
		})
	}
}

// client-go sends the request again, up to ten times, and reports none of these answers.
func TestAnswersThatAskForARepeatAreReported(t *testing.T) {
	t.Parallel()
	const repeat = "asks to repeat the request later"
	cases := map[string]struct {
		fault  faults
		within time.Duration
		want   string
	}{
		"streamed list, soon":    {faults{status: 429, retryAfter: "1"}, 12 * time.Second, "injected"},
		"streamed list":          {faults{status: 429, retryAfter: "20"}, 31 * time.Second, repeat},
		"streamed list, unready": {faults{status: 503, retryAfter: "20"}, 31 * time.Second, repeat},
		"streamed list, an hour": {faults{status: 429, retryAfter: "3600"}, 31 * time.Second, "not answered in full within 30s"},
		"list, cut late":         {faults{noStreamList: true, end: cutLate}, 121 * time.Second, "not answered within 2m0s"},
		"list":                   {faults{status: 503, retryAfter: "20", noStreamList: true}, 81 * time.Second, repeat},
		"list, late":             {faults{status: 503, retryAfter: "120", noStreamList: true}, 121 * time.Second, repeat},
		"list, an hour":          {faults{status: 503, retryAfter: "3600", noStreamList: true}, 301 * time.Second, "not answered in full within 5m0s"},
		"streamed list, once":    {faults{status: 429, retryAfter: "1", hangAfter: 1}, 31 * time.Second, "not answered within 30s"},
		"list, once":             {faults{status: 503, retryAfter: "1", hangAfter: 2, noStreamList: true}, 122 * time.Second, "not answered within 2m0s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				s := newServer(t, object("a"))
				s.Fault(c.fault)
				bulk := startBulk(t, s, watch.Config{})
				pass(c.within)
				_, err := bulk.LastWatchError()
				require.ErrorContains(t, err, c.want)
				s.Fault(faults{})
				pass(6 * time.Minute)
				assert.True(t, bulk.IsSynced(), "it is tried again")
			})
		})
	}
}

// client-go sends a list again whose connection breaks.
func cutLate(http.ResponseWriter, map[string]any) {
	<-time.After(100 * time.Second)
	panic(http.ErrAbortHandler)
}

// The server asks for fewer requests: a list would be one more.
func TestWatchThatIsToBeRepeatedLaterGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{OnChange: calls.onChange})
		pass(time.Minute)
		calls.read()
		s.Fault(faults{status: 429, retryAfter: "20"})
		s.Drop(nil)
		pass(35 * time.Second)
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "asks to repeat the request later")
		before := len(s.Requests())
		s.Fault(faults{})
		s.Update(object("a"))
		pass(2 * time.Minute)
		assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read())
		assert.Len(t, s.Requests(), before+1, "a watch")
	})
}

func TestMuteStreamedListIsListed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{mute: true})
		bulk := startBulk(t, s, watch.Config{})
		pass(149 * time.Second)
		assert.False(t, bulk.IsSynced(), "the initial list has not come")
		pass(2 * time.Second)
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "sent nothing of the initial list for 2m30s")
		assert.True(t, bulk.IsSynced(), "the second request is a plain list")
	})
}

func TestWatchWithoutAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{OnChange: calls.onChange})
		pass(time.Minute)
		calls.read()
		s.Fault(faults{hang: true})
		s.Drop(nil)
		s.Update(object("a"))
		pass(35 * time.Second)
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "not answered within 30s")
		s.Fault(faults{})
		pass(2 * time.Minute)
		assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read())
	})
}

func TestListBodyThatStallsIsGivenUp(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"), object("b"))
		s.Fault(faults{noStreamList: true, end: func(w http.ResponseWriter, list map[string]any) {
			_, _ = w.Write(afterOneItem(list))
			w.(http.Flusher).Flush()
			<-time.After(time.Hour)
		}})
		bulk := startBulk(t, s, watch.Config{})
		pass(5*time.Minute + time.Millisecond)
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "not answered in full within 5m0s")
		s.Fault(faults{})
		pass(time.Minute)
		assert.Equal(t, 2, bulk.Store().Len())
		pass(time.Hour) // for the server to end
	})
}

// A slow server is not one that hangs: the limit is for the time without any
// answer, and a list may take longer than a watch takes to open.
func TestSlowListIsWaitedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"), object("b"))
		s.Fault(faults{noStreamList: true, end: func(w http.ResponseWriter, list map[string]any) {
			<-time.After(time.Minute) // the API server's own limit
			_, _ = w.Write([]byte(" "))
			w.(http.Flusher).Flush()
			<-time.After(2 * time.Minute)
			send(w, list)
		}})
		bulk := startBulk(t, s, watch.Config{})
		pass(3*time.Minute + time.Second)
		assert.True(t, bulk.IsSynced(), "the list has come in the end")
		_, err := bulk.LastWatchError()
		assert.NoError(t, err)
	})
}

// Where bookmarks come, about one a minute, a stream without any is broken.
// Some resources have none: their streams are renewed to see whether the
// server is there, which is no error.
func TestSilentStreamIsRenewed(t *testing.T) {
	t.Parallel()
	for name, bookmarks := range map[string]bool{"with bookmarks before": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				s := newServer(t, object("a"))
				bulk := startBulk(t, s, watch.Config{OnChange: calls.onChange})
				if bookmarks {
					s.Bookmark()
				}
				pass(time.Minute)
				calls.read()
				s.Fault(faults{mute: true})
				s.Drop(nil)
				pass(time.Second)
				s.Update(object("a"))
				pass(time.Second)
				s.Fault(faults{})
				pass(147 * time.Second)
				assert.Empty(t, calls.read())
				pass(2 * time.Second)
				assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read())
				_, err := bulk.LastWatchError()
				assert.Equal(t, bookmarks, err != nil, err)
			})
		})
	}
}

func TestStreamWithBookmarksIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		startBulk(t, s, watch.Config{})
		requests := len(s.Requests())
		for range 60 {
			pass(time.Minute)
			s.Bookmark()
		}
		assert.Len(t, s.Requests(), requests)
	})
}

// traced is a client that keeps the contexts of the last list and of the last stream.
type traced struct {
	scripted

	watched, listed atomic.Pointer[context.Context]

	answer func(ctx context.Context) error
}

func (c *traced) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return c
}

func (c *traced) Namespace(string) dynamic.ResourceInterface { return c }

func (c *traced) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	c.listed.Store(&ctx)
	return c.scripted.List(ctx, options)
}

func (c *traced) Watch(ctx context.Context, options metav1.ListOptions) (kubewatch.Interface, error) {
	c.watched.Store(&ctx)
	if err := c.answer(ctx); err != nil {
		return nil, err
	}
	return c.scripted.Watch(ctx, options)
}

func startTraced(t bubble, answer func(ctx context.Context) error) (*watch.Bulk, *traced) {
	t.Helper()
	client := &traced{answer: answer}
	bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName}, client)
	require.NoError(t, err)
	start(t, bulk)
	return bulk, client
}

func TestLimitEndsWithTheAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		bulk, client := startTraced(t, func(context.Context) error { return nil })
		ctx := *client.watched.Load()
		httptrace.ContextClientTrace(ctx).GotFirstResponseByte() // late, as by another goroutine
		for range 10 {
			client.current.Load().Modify(object("a"))
			pass(time.Minute)
		}
		require.NoError(t, ctx.Err(), "the stream goes on")
		bulk.Stop()
		pass(time.Second)
		assert.Error(t, ctx.Err())
	})
}

// For a logger that is enabled at this level, client-go turns the whole body of
// a list into a string.
func TestListHasNoLoggerForItsBody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		_, client := startTraced(t, func(context.Context) error { return nil })
		assert.False(t, klog.FromContext(*client.listed.Load()).V(8).Enabled(), "the body would be logged at level 8")
	})
}

func TestRequestThatFailedIsEnded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		_, client := startTraced(t, func(context.Context) error { return errSame })
		assert.Error(t, (*client.watched.Load()).Err())
	})
}

// A client may return the context's error alone, or not look at it.
func TestLimitIsNamedWhateverTheClientReturns(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"the context's error": context.Canceled,
		"a stream, too late":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				bulk, _ := startTraced(t, func(ctx context.Context) error { <-ctx.Done(); return answer })
				pass(29 * time.Second)
				_, err := bulk.LastWatchError()
				require.NoError(t, err)
				pass(2 * time.Second)
				_, err = bulk.LastWatchError()
				require.ErrorContains(t, err, "the server has not answered within 30s")
				assert.NotContains(t, err.Error(), "nil")
				if answer != nil {
					require.ErrorIs(t, err, answer)
				}
			})
		})
	}
}

// A list waits for its turn.
func TestRateLimitOfTheClientIsNotTheServers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true})
		config := &rest.Config{Host: "http://server", QPS: 1.0 / 200, Burst: 1}
		transport := &http.Transport{DialContext: s.dial, DisableKeepAlives: true}
		client, err := dynamic.NewForConfigAndClient(config, &http.Client{Transport: transport})
		require.NoError(t, err)
		_, err = client.Resource(ingresses).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName}, client)
		require.NoError(t, err)
		start(t, bulk)
		pass(199 * time.Second)
		assert.False(t, bulk.IsSynced(), "the client waits for its own rate limit")
		pass(2 * time.Second)
		assert.True(t, bulk.IsSynced(), "the list has come")
		_, err = bulk.LastWatchError()
		assert.NoError(t, err)
	})
}
