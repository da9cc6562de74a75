package watch_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
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

func TestWatchErrorsThatClientGoKeepsToItself(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		hit     func(s *apiServer)
		want    string // empty: no error
		expired bool   // which is logged for debugging
	}{
		"an error inside a stream":     {func(s *apiServer) { s.Drop(failure(500, "InternalError")) }, "injected", false},
		"too many requests in it":      {func(s *apiServer) { s.Drop(failure(429, "TooManyRequests")) }, "injected", false},
		"connection refused afterward": {func(s *apiServer) { s.Fault(faults{refuse: true}); s.Drop(nil) }, "refused", false},
		"too many requests afterward":  {func(s *apiServer) { s.Fault(faults{status: 429}); s.Drop(nil) }, "injected", false},
		"410 is normal":                {func(s *apiServer) { s.Compact(); s.Drop(nil) }, "", true},
		"410 in a stream is normal":    {func(s *apiServer) { s.Drop(failure(410, "Expired")) }, "", true},
		"the end of a stream, too":     {func(s *apiServer) { s.Drop(nil) }, "", false},
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
				pass(2 * time.Second)
				for _, last := range []func() (time.Time, error){bulk.LastWatchError, single.LastWatchError} {
					at, err := last()
					if c.want == "" {
						require.NoError(t, err)
						assert.Zero(t, at)
						continue
					}
					require.ErrorContains(t, err, c.want)
					assert.WithinRange(t, at, hit, time.Now())
				}
				assert.Equal(t, c.want != "", len(book.lines(t, "WARN", "")) > 0)
				assert.Equal(t, c.expired, len(book.lines(t, "DEBUG+3", "watch expired")) > 0)
				assert.Empty(t, append(book.lines(t, "INFO", ""), book.lines(t, "ERROR", "")...))
				s.Fault(faults{})
				s.Update(object("a"))
				pass(2 * time.Minute)
				assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read(), "the watcher goes on")
			})
		})
	}
}

func TestTheEndOfAStreamIsLoggedForDebugging(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		s := newServer(t, object("a"))
		startBulk(t, s, watch.Config{Logger: book.logger()})
		pass(time.Minute)
		s.Drop(nil)
		synctest.Wait()
		assert.Len(t, book.lines(t, "DEBUG+3", "watch closed"), 1)
		for _, level := range []string{"INFO", "WARN", "ERROR"} {
			assert.Empty(t, book.lines(t, level, ""))
		}
	})
}

// The server's answer is a list, and no error: client-go alone knows that it cannot use it.
func TestErrorThatClientGoAloneReportsIsWatchError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		var errs journal
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true, end: func(w http.ResponseWriter, list map[string]any) {
			list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "Table"
			send(w, list)
		}})
		bulk := startBulk(t, s, watch.Config{Logger: book.logger(), OnWatchError: func(_ context.Context, err error) { errs.add("%s", err) }})
		assert.Len(t, book.lines(t, "WARN", "watch failed"), 1)
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "unsupported list gvk")
		assert.Equal(t, []string{err.Error()}, errs.read())
		assert.False(t, bulk.IsSynced(), "the list cannot be decoded")
	})
}

func TestAResourceThatIsNotServed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{status: 404})
		bulk := startBulk(t, s, watch.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		_, err := bulk.WaitForSync(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Minute, time.Since(began))
		assert.Contains(t, err.Error(), "wait for sync of ingresses.networking.k8s.io/v1: context deadline exceeded; last watch error, at ")
		at, err := bulk.LastWatchError()
		require.Error(t, err)
		assert.Less(t, time.Since(at), time.Minute, "tried again at least every minute")
		s.Fault(faults{})
		count, err := bulk.WaitForSync(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, count, "installed later, served then")
	})
}

// flaky is a client that fails while it is sick, always with the same error.
type flaky struct {
	scripted
	sick     atomic.Bool
	failures atomic.Int32
}

var errSame = errors.New("no route to host")

func (f *flaky) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return f
}

func (f *flaky) Namespace(string) dynamic.ResourceInterface { return f }

func (f *flaky) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if f.sick.Load() {
		f.failures.Add(1)
		return nil, errSame
	}
	return f.scripted.List(ctx, options)
}

func (f *flaky) Watch(ctx context.Context, options metav1.ListOptions) (kubewatch.Interface, error) {
	if f.sick.Load() {
		f.failures.Add(1)
		return nil, errSame
	}
	return f.scripted.Watch(ctx, options)
}

func TestEveryWatchErrorIsLoggedOnceAlsoIfItIsTheSame(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var book logBook
		client := &flaky{}
		client.sick.Store(true)
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName, Logger: book.logger()}, client)
		require.NoError(t, err)
		start(t, bulk)
		for range 3 {
			client.sick.Store(false)
			pass(61 * time.Minute) // a silent stream is renewed after 150 s
			before := len(book.lines(t, "WARN", "watch failed"))
			assert.EqualValues(t, client.failures.Load(), before, "lists; client-go reports each a second time")
			client.sick.Store(true)
			client.current.Load().Stop()
			pass(time.Second)
			assert.Greater(t, len(book.lines(t, "WARN", "watch failed")), before, "the same error after hours without one")
			at, err := bulk.LastWatchError()
			require.ErrorIs(t, err, errSame)
			assert.WithinDuration(t, time.Now(), at, time.Second)
		}
		pass(time.Minute)
		assert.Len(t, book.lines(t, "WARN", "watch failed"), int(client.failures.Load()))
		client.sick.Store(false)
		pass(time.Minute)
	})
}
