package apiserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// event is an event of a watch, shortened.
type event struct {
	Type, Name, Version string
	Data                map[string]any
	Initial             bool
	Status              metav1.Status
}

// watcher reads a watch in a bubble: the handler writes into a pipe.
type watcher struct {
	t      *testing.T
	events chan event
	// aborted says that the connection broke.
	aborted chan bool
}

// pipeWriter is a ResponseWriter that a test reads while the handler runs.
type pipeWriter struct {
	io.Writer
	header http.Header
	code   int
}

func (p *pipeWriter) Header() http.Header  { return p.header }
func (p *pipeWriter) WriteHeader(code int) { p.code = code }
func (p *pipeWriter) Flush()               {}

// watch opens a watch; it ends with the Server.
func watch(t *testing.T, s *apiserver.Server, path string) *watcher {
	t.Helper()
	r, w := io.Pipe()
	out := &watcher{t: t, events: make(chan event, 100), aborted: make(chan bool, 1)}
	go func() {
		defer func() {
			out.aborted <- recover() != nil
			_ = w.Close()
		}()
		s.ServeHTTP(&pipeWriter{Writer: w, header: http.Header{}}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	}()
	go func() {
		defer close(out.events)
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var raw struct {
				Type   string          `json:"type"`
				Object json.RawMessage `json:"object"`
			}
			if json.Unmarshal(lines.Bytes(), &raw) != nil {
				out.events <- event{Type: "GARBAGE", Name: lines.Text()}
				continue
			}
			var o struct {
				metav1.PartialObjectMetadata
				Data map[string]any `json:"data"`
			}
			e := event{Type: raw.Type}
			if raw.Type == "ERROR" {
				_ = json.Unmarshal(raw.Object, &e.Status)
			} else if json.Unmarshal(raw.Object, &o) == nil {
				e.Name, e.Version, e.Data = o.Name, o.ResourceVersion, o.Data
				e.Initial = o.Annotations[metav1.InitialEventsAnnotationKey] == "true"
			}
			out.events <- e
		}
	}()
	synctest.Wait()
	return out
}

// next returns what has come, as "TYPE name".
func (w *watcher) next() []string {
	synctest.Wait()
	var out []string
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				return append(out, "end")
			}
			text := e.Type + " " + e.Name
			if e.Initial {
				text = e.Type + " initial"
			}
			if e.Type == "ERROR" {
				text = fmt.Sprintf("ERROR %d %s", e.Status.Code, e.Status.Reason)
			}
			out = append(out, text)
		default:
			return out
		}
	}
}

// set writes a ConfigMap with a label.
func set(t *testing.T, s *apiserver.Server, name, label string) world.Object {
	t.Helper()
	o, err := s.Store(worldKey("configmaps", name), world.Object{
		"metadata": map[string]any{"labels": map[string]any{"l": label}},
	})
	require.NoError(t, err)
	return o
}

// bubble runs a test in fake time, with a Server that has two ConfigMaps.
func bubble(t *testing.T, test func(t *testing.T, s *apiserver.Server), options ...func(*apiserver.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := server(t, options...)
		set(t, s, "a", "1")
		set(t, s, "b", "2")
		test(t, s)
		s.Stop()
		synctest.Wait()
	})
}

func TestWatchStarts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why, query string
		want       []string
	}{
		"no version":   {"The state comes first.", "", []string{"ADDED a", "ADDED b", "ADDED c", "MODIFIED a"}},
		"any version":  {"The state comes first.", "&resourceVersion=0", []string{"ADDED a", "ADDED b", "ADDED c", "MODIFIED a"}},
		"version":      {"Only what follows it.", "&resourceVersion=3", []string{"ADDED b", "ADDED c", "MODIFIED a"}},
		"future":       {"What is not newer is left out.", "&resourceVersion=5", []string{"MODIFIED a"}},
		"too old":      {"It was compacted.", "&resourceVersion=1", []string{"ERROR 410 Expired", "end"}},
		"streaming":    {"A bookmark ends the state.", "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", []string{"ADDED a", "ADDED b", "BOOKMARK initial", "ADDED c", "MODIFIED a"}},
		"one object":   {"By its name.", "&fieldSelector=metadata.name%3Da", []string{"ADDED a", "MODIFIED a"}},
		"one missing":  {"It may come.", "&fieldSelector=metadata.name%3Dc", []string{"ADDED c"}},
		"label":        {"a leaves the selection.", "&labelSelector=l%3D1", []string{"ADDED a", "DELETED a"}},
		"other label":  {"a enters the selection.", "&labelSelector=l+in+(2,9)", []string{"ADDED b", "ADDED a"}},
		"all but none": {"Nothing matches.", "&labelSelector=none", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *apiserver.Server) {
				t.Helper()
				s.Compact(2)
				w := watch(t, s, configMaps+"?watch=true"+tc.query)
				set(t, s, "c", "3")
				set(t, s, "a", "9")
				assert.Equal(t, tc.want, w.next(), tc.why)
			})
		})
	}
}

func TestWatchOfAllNamespacesSeesDeletions(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *apiserver.Server) {
		t.Helper()
		w := watch(t, s, "/api/v1/configmaps?watch=1&resourceVersion="+fmt.Sprint(s.Version()))
		remove(t, s, configMaps+"/a")
		assert.Equal(t, []string{"DELETED a"}, w.next())
		set(t, s, "a", "1")
		assert.Equal(t, []string{"ADDED a"}, w.next())
	})
}

func TestWatchBookmarks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *apiserver.Server) {
		t.Helper()
		w := watch(t, s, configMaps+"?watch=true&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion=4")
		sleep(59 * time.Second)
		assert.Empty(t, w.next())
		sleep(time.Second)
		assert.Equal(t, []string{"BOOKMARK "}, w.next())
		sleep(time.Minute)
		assert.Equal(t, []string{"BOOKMARK "}, w.next())
		sleep(28 * time.Second)
		assert.Equal(t, []string{"BOOKMARK "}, w.next(), "the last comes before the end")
		sleep(2 * time.Second)
		assert.Equal(t, []string{"end"}, w.next())
		assert.False(t, <-w.aborted, "the watch has ended in good order")
		assert.Empty(t, s.Watches())
	})
}

func TestWatchIsControlled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do      func(*apiserver.Watch)
		want    []string
		aborted bool
	}{
		"close":  {(*apiserver.Watch).Close, []string{"end"}, false},
		"break":  {(*apiserver.Watch).Break, []string{"end"}, true},
		"expire": {(*apiserver.Watch).Expire, []string{"ERROR 410 Expired", "end"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *apiserver.Server) {
				t.Helper()
				w := watch(t, s, configMaps+"?watch=true&resourceVersion=4&allowWatchBookmarks=true")
				open := s.Watches()
				require.Len(t, open, 1)
				assert.EqualValues(t, 1, open[0].Number)
				assert.Equal(t, "configmaps/shop/", open[0].Key.String())
				open[0].Hold()
				set(t, s, "c", "3")
				sleep(2 * time.Minute)
				assert.Empty(t, w.next(), "neither events nor bookmarks")
				open[0].Release()
				assert.Equal(t, []string{"ADDED c"}, w.next())
				open[0].Hold()
				set(t, s, "d", "3")
				tc.do(open[0])
				assert.Equal(t, tc.want, w.next())
				assert.Equal(t, tc.aborted, <-w.aborted)
			})
		})
	}
}

func TestWatchCanBeHeldFromItsStart(t *testing.T) {
	t.Parallel()
	hold := func(o *apiserver.Options) { o.OnWatch = (*apiserver.Watch).Hold }
	bubble(t, func(t *testing.T, s *apiserver.Server) {
		t.Helper()
		w := watch(t, s, configMaps+"?watch=true")
		assert.Empty(t, w.next())
		s.Watches()[0].Release()
		assert.Equal(t, []string{"ADDED a", "ADDED b"}, w.next())
	}, hold)
}

func TestStreamingListsCanBeUnknown(t *testing.T) {
	t.Parallel()
	without := func(o *apiserver.Options) { o.NoStreamingLists = true }
	s := server(t, without)
	a := get(t, s, configMaps+"?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	require.Equal(t, 422, a.Code)
	assert.Equal(t, metav1.StatusReasonInvalid, a.failure().Reason)
	a = get(t, server(t), configMaps+"?watch=true&sendInitialEvents=true")
	require.Equal(t, 422, a.Code)
	assert.Contains(t, a.failure().Message, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
}

func TestEventsHaveTwoAPIs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *apiserver.Server) {
		t.Helper()
		const old, current = "/api/v1/namespaces/shop/events", "/apis/events.k8s.io/v1/namespaces/shop/events"
		w := watch(t, s, old+"?watch=true&fieldSelector=involvedObject.name%3Dcart")
		body := `{"metadata":{"name":"e"},"eventTime":"2026-01-01T00:00:00.000001Z","reportingController":"pod-reloader","reportingInstance":"p","action":"Reload","reason":"Reloaded","type":"Normal",
"regarding":{"kind":"Deployment","namespace":"shop","name":"cart"},"note":"why"}`
		require.Equal(t, 201, post(t, s, current, body).Code)
		assert.Equal(t, []string{"ADDED e"}, w.next())
		u := get(t, s, old+"/e").object()
		assert.Equal(t, "why", field(u, "message"))
		merge(t, s, current+"/e", `{"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:01.000000Z"}}`).object()
		assert.Equal(t, []string{"MODIFIED e"}, w.next())
		require.Equal(t, 200, remove(t, s, old+"/e").Code)
		assert.Equal(t, []string{"DELETED e"}, w.next())
		assert.Equal(t, 404, get(t, s, current+"/e").Code)
	})
}

func TestWatchOfAServerThatStaysBehind(t *testing.T) {
	t.Parallel()
	behind := func(o *apiserver.Options) { o.Gate = gate(apiserver.Fate{Lag: 1, Held: true}) }
	bubble(t, func(t *testing.T, s *apiserver.Server) {
		t.Helper()
		w := watch(t, s, configMaps+"?watch=true&resourceVersion=0")
		set(t, s, "c", "3")
		sleep(2 * time.Minute)
		assert.Equal(t, []string{"ADDED a"}, w.next())
		assert.Equal(t, 1, s.Behind())
		s.Watches()[0].Release()
		assert.Equal(t, []string{"ADDED b", "ADDED c"}, w.next())
	}, behind)
}

func TestStatesThatAWatchHasNotDeliveredAreCounted(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *apiserver.Server) {
		t.Helper()
		watch(t, s, configMaps+"?watch=true")
		s.Watches()[0].Hold()
		set(t, s, "a", "2")
		set(t, s, "b", "3")
		set(t, s, "a", "4")
		s.Watches()[0].Expire()
		synctest.Wait()
		assert.Equal(t, 1, s.Folded(), "the second state of a")
	})
}
