package watch_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

func reset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// client-go closes a broken stream as if it had ended, and makes an empty one
// of a connection that breaks while it is opened.
func TestBrokenConnectionIsWatchError(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		hit  func(s *apiServer)
		want string
	}{
		"stream reset":                 {func(s *apiServer) { s.Break(reset()) }, "connection reset by peer"},
		"stream cut":                   {func(s *apiServer) { s.Break(io.EOF) }, "unexpected EOF"},
		"connection closed here":       {func(s *apiServer) { s.Break(net.ErrClosed) }, "use of closed network connection"},
		"stream times out":             {func(s *apiServer) { s.Break(os.ErrDeadlineExceeded) }, "i/o timeout"},
		"reset while a stream opens":   {func(s *apiServer) { s.Fault(faults{lose: reset()}); s.Drop(nil) }, "before the server answered"},
		"cut while a stream opens":     {func(s *apiServer) { s.Fault(faults{lose: io.EOF}); s.Drop(nil) }, "before the server answered"},
		"timeout while a stream opens": {func(s *apiServer) { s.Fault(faults{lose: os.ErrDeadlineExceeded}); s.Drop(nil) }, "before the server answered"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				var book logBook
				s := newServer(t, object("a"))
				bulk := startBulk(t, s, watch.Config{Logger: book.logger(), OnChange: calls.onChange})
				single := startSingle(t, s, (&journal{}).single("a"))
				pass(10 * time.Second)
				calls.read()
				hit := time.Now()
				c.hit(s)
				pass(30 * time.Second) // client-go opens a stream ten times, once a second
				for _, last := range []func() (time.Time, error){bulk.LastWatchError, single.LastWatchError} {
					at, err := last()
					require.Error(t, err)
					assert.WithinRange(t, at, hit, time.Now())
				}
				logged := book.lines(t, "WARN", "watch failed")
				require.NotEmpty(t, logged)
				assert.Contains(t, logged[0]["error"], c.want)
				s.Fault(faults{})
				s.Update(object("a"))
				pass(2 * time.Minute)
				assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read(), "the watcher goes on")
			})
		})
	}
}

// client-go lists again after each of them.
func TestWatchThatEndsAtOnceIsError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{})
		pass(time.Minute)
		s.Fault(faults{short: true, noStreamList: true})
		s.Drop(nil)
		pass(time.Minute)
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "closed the watch at once")
	})
}

// A proxy lets the list pass, and ends the watch behind it: everything is listed again, and what happens in between is late.
func TestWatchThatEndsBehindItsInitialListIsError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{endAfterStreamedList: true})
		bulk := startBulk(t, s, watch.Config{})
		pass(time.Minute)
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "closed the watch at once")
	})
}

// client-go opens the next one without a pause, as if something had happened.
func TestWatchesThatSendABookmarkOnlyAreErrorAndPaused(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]faults{"listed": {onlyBookmark: true, noStreamList: true}, "streamed": {onlyBookmark: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var errs journal
				s := newServer(t, object("a"))
				s.Fault(server)
				bulk := startBulk(t, s, watch.Config{OnWatchError: func(_ context.Context, err error) { errs.add("%s", err) }})
				pass(10 * time.Minute)
				_, err := bulk.LastWatchError()
				require.ErrorContains(t, err, "closed the watch at once")
				assert.Greater(t, len(errs.read()), 10)
				assert.Less(t, len(s.Requests()), 150)
				s.Fault(faults{})
				pass(time.Minute)
				s.Update(object("a"))
				pass(time.Second)
				assert.Equal(t, "1002", bulk.Store().Object("default", "a").GetResourceVersion())
			})
		})
	}
}

// An API server that ends has sent bookmarks, too.
func TestWatchThatSendsABookmarkOnlyOnceIsNoError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{})
		for range 5 {
			s.Bookmark()
			synctest.Wait()
			s.Drop(nil)
			pass(time.Minute)
		}
		_, err := bulk.LastWatchError()
		require.NoError(t, err)
	})
}

// A watch that was busy behind its initial list has ended as others do.
func TestWatchWithAnEventBehindItsInitialListEndsWithoutError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{})
		s.Create(object("b"))
		synctest.Wait()
		s.Drop(nil)
		pass(time.Minute)
		_, err := bulk.LastWatchError()
		require.NoError(t, err)
	})
}

// What reads client-go's log must not keep it from the logger.
func TestClientGoStillLogs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		s.Fault(faults{warn: "this version is deprecated"})
		startBulk(t, s, watch.Config{Logger: book.logger()})
		assert.NotEmpty(t, book.lines(t, "DEBUG+3", "this version is deprecated"))
		assert.Empty(t, book.lines(t, "DEBUG-5", ""), "client-go's level 8: the bodies of requests")
	})
}

func TestEndOfWatcherIsNoWatchError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		bulk := newBulk(t, s, watch.Config{Logger: book.logger()})
		ended := make(chan error)
		go func() { ended <- bulk.Start(t.Context()) }()
		pass(time.Minute)
		bulk.Stop()
		require.NoError(t, <-ended)
		_, err := bulk.LastWatchError()
		require.NoError(t, err)
		assert.Empty(t, book.lines(t, "WARN", ""))
	})
}

// What a list does not name counts as deleted: half a list must not pass for
// a whole one.
func TestListThatEndsEarlyIsError(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(http.ResponseWriter, map[string]any){
		"as if it were whole": endCleanly, "before its length": endBeforeLength, "with the connection": endWithConnection,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				s := newServer(t, object("a"), object("b"))
				s.Fault(faults{noStreamList: true})
				bulk := startBulk(t, s, watch.Config{OnObject: calls.onObject})
				calls.read()
				s.Fault(faults{noStreamList: true, end: end})
				relist(s)
				_, err := bulk.LastWatchError()
				require.Error(t, err)
				assert.Empty(t, calls.read())
				assert.Equal(t, 2, bulk.Store().Len())
				s.Fault(faults{})
				pass(2 * time.Minute)
				s.Delete(object("b"))
				pass(time.Second)
				assert.Equal(t, []string{"b@1002 → none"}, calls.read())
			})
		})
	}
}

// client-go asks for the next stream without a pause.
func TestStreamedListThatEndsEarlyIsListed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault faults
		want  string
	}{
		"the stream ends":      {faults{endStreamedList: true}, "the stream ended within the initial list"},
		"takes it for a watch": {faults{ignoreStreamedList: true}, "the server has sent a bookmark before the end of the initial list"},
		"the stream breaks":    {faults{breakStreamedList: true}, "the stream ended within the initial list: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				s := newServer(t, object("a"), object("b"))
				s.Fault(tc.fault)
				bulk := startBulk(t, s, watch.Config{})
				pass(time.Minute)
				_, err := bulk.LastWatchError()
				require.ErrorContains(t, err, tc.want)
				assert.Equal(t, 2, bulk.Store().Len())
				assert.Len(t, s.Requests(), 3, "a streamed list, a list, a watch")
			})
		})
	}
}

// ordered is a client that streams lists, in the given order.
type ordered struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface

	streams chan kubewatch.Interface
	// listing has, for each watch, whether it was to begin with a list.
	listing chan bool
}

func (c *ordered) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return c
}

func (c *ordered) Namespace(string) dynamic.ResourceInterface { return c }

func (c *ordered) Watch(_ context.Context, options metav1.ListOptions) (kubewatch.Interface, error) {
	c.listing <- options.SendInitialEvents != nil
	return <-c.streams, nil
}

func endOfList() kubewatch.Event {
	end := &unstructured.Unstructured{Object: map[string]any{}}
	end.SetResourceVersion("1")
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return kubewatch.Event{Type: kubewatch.Bookmark, Object: end}
}

// The server asks for fewer requests: a list would be one more.
func TestRefusalWithinAWatchCausesNoList(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		first := make(chan kubewatch.Event, 2)
		first <- endOfList()
		first <- kubewatch.Event{Type: kubewatch.Error, Object: failure(429, "TooManyRequests")}
		client := &ordered{streams: make(chan kubewatch.Interface, 2), listing: make(chan bool, 10)} // cannot list
		client.streams <- kubewatch.NewProxyWatcher(first)
		client.streams <- kubewatch.NewProxyWatcher(make(chan kubewatch.Event))
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName}, client)
		require.NoError(t, err)
		start(t, bulk)
		assert.True(t, <-client.listing, "the first watch begins with a list")
		assert.False(t, <-client.listing, "the second watch continues the first one")
		pass(time.Minute)
		assert.Empty(t, client.listing, "there is no third one")
	})
}

// client-go logs more errors than those that end a stream.
func TestOnlyABrokenConnectionCountsAsLoss(t *testing.T) {
	t.Parallel()
	assert.NoError(t, watch.Heard(t.Context(), "err", errors.New("unknown kind"), "attempt", 1))
	assert.ErrorIs(t, watch.Heard(t.Context(), "err", io.ErrUnexpectedEOF, "attempt", 1), io.ErrUnexpectedEOF)
}

// The end that follows an error must not count as an error: an expired version
// is none.
func TestEndAfterAnErrorEventIsNoOtherError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		expired := make(chan kubewatch.Event, 2)
		expired <- endOfList()
		expired <- kubewatch.Event{Type: kubewatch.Error, Object: failure(410, "Expired")}
		close(expired)
		whole := make(chan kubewatch.Event, 1)
		whole <- endOfList()
		client := &ordered{streams: make(chan kubewatch.Interface, 2), listing: make(chan bool, 10)}
		client.streams <- kubewatch.NewProxyWatcher(expired)
		client.streams <- kubewatch.NewProxyWatcher(whole)
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName}, client)
		require.NoError(t, err)
		start(t, bulk)
		pass(time.Minute)
		assert.Empty(t, client.streams)
		_, err = bulk.LastWatchError()
		assert.NoError(t, err)
	})
}

// A token that has expired is replaced from outside; a watch that pauses for
// minutes misses that.
func TestRefusalIsRetriedWithinAMinute(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{
		"unauthorized": http.StatusUnauthorized, "forbidden": http.StatusForbidden, "not found": http.StatusNotFound,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				s := newServer(t, object("a"))
				single := startSingle(t, s, (&journal{}).single("a"))
				pass(time.Minute)
				s.Fault(faults{status: status})
				s.Drop(nil)
				pass(time.Hour)
				requests := s.Requests()
				for i, r := range requests[1:] {
					if i > 0 {
						assert.LessOrEqual(t, r.at.Sub(requests[i].at), time.Minute)
					}
				}
				assert.Less(t, len(requests), 500, "with pauses")
				s.Fault(faults{})
				s.Update(object("a"))
				pass(time.Minute)
				assert.Equal(t, "1002", single.Object().GetResourceVersion())
			})
		})
	}
}
