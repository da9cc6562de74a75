package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// taken is a Sink that keeps what it is given.
type taken struct{ calls []string }

func (s *taken) Put(m *corev1.ConfigMap)    { s.calls = append(s.calls, "put "+m.Name) }
func (s *taken) Remove(m *corev1.ConfigMap) { s.calls = append(s.calls, "remove "+m.Name) }
func (s *taken) Replace(all []*corev1.ConfigMap, _ string) {
	call := "replace"
	for _, m := range all {
		call += " " + m.Name
	}
	s.calls = append(s.calls, call)
}

func configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// server answers each list by the next of fails, and then with one ConfigMap; it has no streaming lists.
type server struct {
	fails   []error
	lists   []time.Time
	watches chan *watch.FakeWatcher
	// initial are the streaming lists; without them the server has none.
	initial chan *watch.FakeWatcher
	// streams and refused are what the requests for a streaming list, and for a watch, are answered with first.
	streams, refused []error
}

func (s *server) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.lists = append(s.lists, time.Now())
	if len(s.fails) > 0 {
		err := s.fails[0]
		s.fails = s.fails[1:]
		return nil, err
	}
	return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.ConfigMap{*configMap("a", "1")}}, nil
}

func (s *server) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if errs := s.answers(o); len(*errs) > 0 {
		err := (*errs)[0]
		*errs = (*errs)[1:]
		return nil, err
	}
	if o.SendInitialEvents != nil && s.initial != nil {
		w := watch.NewFake()
		s.initial <- w
		return w, nil
	}
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
	}
	w := watch.NewFake()
	s.watches <- w
	return w, nil
}

func (s *server) answers(o metav1.ListOptions) *[]error {
	if o.SendInitialEvents != nil {
		return &s.streams
	}
	return &s.refused
}

// run runs a loop in a bubble until the test ends.
func run(t *testing.T, s *server, l *Loop[*corev1.ConfigMap]) *taken {
	t.Helper()
	sink := &taken{}
	s.watches = make(chan *watch.FakeWatcher, 10)
	l.List, l.Watch, l.Sink = s.list, s.watch, sink
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { l.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return sink
}

func TestLoopPassesListsAndEventsToTheSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		sink := run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard()})
		w := <-s.watches
		w.Add(configMap("b", "6"))
		w.Modify(configMap("b", "7"))
		w.Delete(configMap("a", "8"))
		w.Error(&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired})
		<-s.watches
		synctest.Wait()
		assert.Equal(t, []string{"replace a", "put b", "put b", "remove a", "replace a"}, sink.calls, "it lists again where its version has expired")
	})
}

func TestLoopLogsEachFailureOnceAndTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		var refusals []bool
		forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no permission"))
		s := &server{fails: slices.Concat(
			[]error{errors.New("away"), errors.New("away")}, slices.Repeat([]error{forbidden}, 8), []error{apierrors.NewUnauthorized("the token has expired")},
		)}
		run(t, s, &Loop[*corev1.ConfigMap]{
			What: "config objects", Failed: func(_ error, refused bool) { refusals = append(refusals, refused) },
			Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
		})
		<-s.watches
		synctest.Wait()
		require.Len(t, lines, 5)
		assert.Contains(t, lines[0], `"cannot watch; retrying"`)
		assert.Contains(t, lines[1], `"cannot watch; retrying"`, "an API server that has just started may refuse all requests")
		assert.Contains(t, lines[2], `"not allowed to watch; grant get, list and watch; retrying"`)
		assert.Contains(t, lines[3], `"cannot watch; retrying"`, "no permission helps")
		assert.Contains(t, lines[4], `"watching again","watch":"config objects"`)
		assert.Equal(t, append([]bool{false, false}, slices.Repeat([]bool{true}, 9)...), refusals)
		assert.Less(t, s.lists[1].Sub(s.lists[0]), s.lists[3].Sub(s.lists[2]), "the pauses grow")
	})
}

// A single API server refuses connections first, and then all requests until it has read the roles.
func TestRestartOfAnAPIServerIsNoMissingPermission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
		forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no permission"))
		s := &server{}
		run(t, s, &Loop[*corev1.ConfigMap]{
			What: "config objects", Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
		})
		for range 2 {
			w := <-s.watches
			<-time.After(time.Minute)
			s.refused, s.fails = []error{refused}, []error{refused, forbidden}
			w.Stop()
		}
		<-s.watches
		synctest.Wait()
		assert.Len(t, lines, 8, "of each restart three failures and the recovery")
		assert.NotContains(t, fmt.Sprint(lines), "not allowed")
	})
}

func TestSameFailureIsLoggedAgainAfterRecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		s := &server{}
		run(t, s, &Loop[*corev1.ConfigMap]{
			What: "config objects", Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
		})
		for range 2 {
			w := <-s.watches
			w.Add(configMap("b", "6"))
			synctest.Wait()
			s.fails = []error{errors.New("away")}
			w.Error(&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired})
		}
		w := <-s.watches
		w.Error(&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}) // a listing that follows no failure
		<-s.watches
		synctest.Wait()
		require.Len(t, lines, 4, "a failure and a recovery, twice")
		for i, want := range []string{"cannot watch", `"watching again","watch":"config objects"`, "cannot watch", `"watching again","watch":"config objects"`} {
			assert.Contains(t, lines[i], want)
		}
	})
}

// The permission to list is no help against a watch that is refused: each listing succeeds, and is a picture of the past soon.
func TestRefusedWatchIsLoggedOnceThoughListingsSucceed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no permission"))
		const times = 10
		s := &server{refused: slices.Repeat([]error{forbidden}, times)}
		sink := run(t, s, &Loop[*corev1.ConfigMap]{
			What: "config objects", Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
		})
		<-s.watches
		synctest.Wait()
		assert.Len(t, sink.calls, times+1, "what is listed is taken in")
		require.Len(t, lines, 3)
		assert.Contains(t, lines[1], `"not allowed to watch; grant get, list and watch; retrying"`)
		assert.Contains(t, lines[2], `"watching again","watch":"config objects"`)
	})
}

// The reflector retries a refused connection and a 429 by itself. Of a streaming list it does so without an end: it neither
// reports the failure nor ends with the context.
func TestStreamingListThatIsRefusedIsReportedAndEndsWithTheContext(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{
		"connection":        fmt.Errorf("dial: %w", syscall.ECONNREFUSED),
		"too many requests": apierrors.NewTooManyRequests("busy", 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{fails: slices.Repeat([]error{refused}, 100), streams: slices.Repeat([]error{refused}, 100)}
				var reported, lines []string
				l := &Loop[*corev1.ConfigMap]{
					List: s.list, Watch: s.watch, Sink: &taken{}, What: "config objects",
					Log:    funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
					Failed: func(err error, _ bool) { reported = append(reported, err.Error()) },
				}
				runForAMinute(t, l)
				assert.Greater(t, len(reported), 5, "each failure is reported")
				assert.Len(t, lines, 1, "the same is logged once")
			})
		})
	}
}

func TestBusyServerCostsNoFurtherListing(t *testing.T) {
	t.Parallel()
	busy := []error{apierrors.NewTooManyRequests("busy", 0), apierrors.NewTooManyRequests("busy", 0)}
	for name, c := range map[string]struct{ streams, refused []error }{
		"a watch with too many requests":          {refused: busy},
		"a streaming list with too many requests": {streams: slices.Clone(busy)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{streams: c.streams, refused: c.refused}
				sink := run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard()})
				<-s.watches
				synctest.Wait()
				assert.Equal(t, []string{"replace a"}, sink.calls, "a failure that passes costs no further listing")
				assert.Empty(t, s.streams, "a listing replaces the streaming list although it is only delayed")
			})
		})
	}
}

// An API server that goes down ends a watch, and refuses the next connections: the objects are listed once it is there again. After too
// many requests, the reflector opens the watch again without a listing.
func TestOutageInAWatchIsReported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		calls []string
	}{
		"connections are refused": {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), []string{"replace a", "replace a", "replace a"}},
		"too many requests":       {apierrors.NewTooManyRequests("busy", 0), []string{"replace a"}},
	} {
		err := tc.err
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := func(seconds string) error { // the reflector gives each attempt another time limit
				if apierrors.IsTooManyRequests(err) {
					return err
				}
				return &url.Error{Op: "Get", URL: "https://api/configmaps?timeoutSeconds=" + seconds, Err: err}
			}
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				failures := 0
				s := &server{}
				sink := run(t, s, &Loop[*corev1.ConfigMap]{
					What: "config objects", Failed: func(error, bool) { failures++ },
					Log: funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{}),
				})
				w := <-s.watches
				for outage := range 2 {
					<-time.After(time.Minute) // to the reflector, one that ends within a second has failed
					s.refused, s.fails = []error{asked("301"), asked("302")}, nil
					if !apierrors.IsTooManyRequests(err) {
						s.refused, s.fails = s.refused[:1], []error{asked("302")}
					}
					w.Stop()
					w = <-s.watches
					synctest.Wait()
					assert.Equal(t, 2*(outage+1), failures)
					require.Len(t, lines, 2*(outage+1))
					assert.Contains(t, lines[2*outage], `"cannot watch; retrying"`)
					assert.Contains(t, lines[2*outage+1], `"watching again","watch":"config objects"`)
				}
				assert.Equal(t, tc.calls, sink.calls)
			})
		})
	}
}

// Each attempt has another port of our own, and a name server is asked from another one.
func TestSameFailureHasTheSameCause(t *testing.T) {
	t.Parallel()
	server := &net.TCPAddr{IP: net.IPv4(10, 96, 0, 1), Port: 443}
	for name, c := range map[string]struct {
		failure func(port int) error
		want    string
	}{
		"connection is reset": {func(port int) error {
			return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Addr: server, Err: syscall.ECONNRESET}
		}, "read tcp: connection reset by peer"},
		"host has several addresses": {func(port int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 96, 0, byte(port)), Port: 443}, Err: syscall.ECONNREFUSED}
		}, "dial tcp: connection refused"},
		"name server is away": {func(port int) error {
			text := fmt.Sprintf("read udp 10.0.0.5:%d->10.0.0.10:53: i/o timeout", port)
			return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: text, Name: "kubernetes", IsTimeout: true}}
		}, "lookup kubernetes: not found false, time-out true"},
		"another error": {func(int) error { return apierrors.NewTooManyRequests("busy", 0) }, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for port := range 2 {
				assert.Equal(t, c.want, Cause(&url.Error{Op: "Get", URL: fmt.Sprint("https://api/?timeoutSeconds=", port), Err: c.failure(port + 1)}))
			}
		})
	}
}

func TestSinkIsGivenItsOwnObjectsOnly(t *testing.T) {
	t.Parallel()
	s := store[*corev1.ConfigMap]{&Loop[*corev1.ConfigMap]{Sink: &taken{}}}
	require.NoError(t, s.Update(configMap("a", "1")))
	require.Error(t, s.Update(&corev1.Secret{}))
	require.Error(t, s.Replace([]any{&corev1.Secret{}}, ""))
}

// A body that is not closed keeps its connection, and the server goes on sending.
func TestStoppedStreamClosesItsBody(t *testing.T) {
	t.Parallel()
	body, server := io.Pipe()
	w := Stream(body, func() (watch.EventType, runtime.Object, error) {
		_, err := body.Read(make([]byte, 1))
		return watch.Added, configMap("a", "1"), err
	}, logr.Discard())
	w.Stop()
	_, err := io.WriteString(server, "x")
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestStreamThatBreaksIsAnOrdinaryEnd(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for end, want := range map[error]error{
		io.EOF: io.EOF, io.ErrUnexpectedEOF: io.ErrUnexpectedEOF, fmt.Errorf("read: %w", io.EOF): io.EOF, broken: broken,
	} {
		d := &decoder{io.NopCloser(nil), func() (watch.EventType, runtime.Object, error) { return "", nil, end }}
		_, _, err := d.Decode()
		d.Close()
		require.Equal(t, want, err, "StreamWatcher compares it so")
	}
}
