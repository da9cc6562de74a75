package configstate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

const wait = time.Minute

func cm(name string) reference.Ref  { return reference.Ref{Kind: reference.ConfigMap, Name: name} }
func sec(name string) reference.Ref { return reference.Ref{Kind: reference.Secret, Name: name} }

// fixture is a Store and what it reports.
type fixture struct {
	*configstate.Store
	server *server
	events chan configstate.Event
	logs   logtest.Lines
	// version is the resourceVersion of the event that next has returned.
	version string
}

func newFixture(t *testing.T, s *server, adjust func(*configstate.Options)) *fixture {
	t.Helper()
	log, lines := logtest.New()
	f := &fixture{server: s, events: make(chan configstate.Event, 1000), logs: lines}
	keys := digesttest.Ring(t, "1")
	options := configstate.Options{
		Config: s.config(), Ring: func() digest.Ring { return keys }, Log: log,
	}
	if adjust != nil {
		adjust(&options)
	}
	store, err := configstate.New(options)
	require.NoError(t, err)
	store.OnEvent(func(e configstate.Event) { f.events <- e })
	f.Store = store
	return f
}

// start runs the Store until the end of the test, and waits until it is synced.
func (f *fixture) start(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	require.NoError(t, f.WaitForSync(deadline(t)))
	return f
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	t.Cleanup(cancel)
	return ctx
}

// next waits for the next event; its time is checked and dropped, and its resourceVersion is kept.
func (f *fixture) next(t *testing.T) configstate.Event {
	t.Helper()
	select {
	case e := <-f.events:
		assert.WithinDuration(t, time.Now(), e.Received, wait)
		f.version = e.ResourceVersion
		e.Received, e.ResourceVersion = time.Time{}, ""
		return e
	case <-time.After(wait):
		require.Fail(t, "no event")
		return configstate.Event{}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, noStreams := range map[string]bool{"streaming list": false, "plain list": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.noStreams = noStreams
			s.put(configMap("a", "one", "x"))
			f := newFixture(t, s, nil).start(t)
			assert.Equal(t, configstate.Event{Namespace: "a", Ref: cm("one"), Type: configstate.Added, Initial: true}, f.next(t))

			db := s.put(secret("b", "db", "x"))
			assert.Equal(t, configstate.Event{Namespace: "b", Ref: sec("db"), Type: configstate.Added}, f.next(t))
			assert.Equal(t, db.GetResourceVersion(), f.version)
			db = s.put(secret("b", "db", "y"))
			assert.Equal(t, configstate.Event{Namespace: "b", Ref: sec("db"), Type: configstate.Modified}, f.next(t))
			assert.Equal(t, db.GetResourceVersion(), f.version)
			before := db.GetResourceVersion()
			s.remove(db)
			assert.Equal(t, configstate.Event{Namespace: "b", Ref: sec("db"), Type: configstate.Deleted}, f.next(t))
			assert.Greater(t, f.version, before, "that of the deletion")
			assert.Empty(t, f.logs(), "all went well")
		})
	}
}

func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(configMap("a", "stays", "x"))
	gone := s.put(configMap("a", "goes", "x"))
	old := s.put(configMap("a", "again", "x"))
	f := newFixture(t, s, nil).start(t)
	for range 3 {
		f.next(t)
	}

	s.refusing("/api", http.StatusGone) // whatever is tried, it is a new listing in the end
	s.breakWatches()
	s.forget(gone)
	s.forget(old)
	s.put(configMap("a", "again", "x")) // the same name, another UID
	s.put(configMap("a", "new", "x"))
	require.Eventually(t, func() bool { return s.refusals() > 0 }, wait, time.Millisecond)
	s.refusing("/api", 0)

	got := map[reference.Ref]configstate.EventType{}
	for range 3 {
		e := f.next(t)
		assert.False(t, e.Initial, "%s: it is not the first listing", e.Ref)
		got[e.Ref] = e.Type
	}
	assert.Equal(t, map[reference.Ref]configstate.EventType{
		cm("goes"): configstate.Deleted, cm("again"): configstate.Modified, cm("new"): configstate.Added,
	}, got, "the unchanged object is not reported")
}

// The version of a creation is known of objects that come while they are watched, and as long as they are as they were created.
func TestCreated(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(configMap("a", "listed", "x"))
	f := newFixture(t, s, func(o *configstate.Options) { o.OwnAnnotations = ours }).start(t)
	f.next(t)
	annotated := func(name, content, value string) client {
		o := configMap("a", name, content)
		o.Annotations = map[string]string{"ours": value, "other": content}
		return o
	}
	version := s.put(annotated("app", "x", "1")).GetResourceVersion()
	f.next(t)
	assert.Equal(t, version, f.Created("a", cm("app")))
	assert.Empty(t, f.Created("a", cm("listed")), "it was there before")
	assert.Empty(t, f.Created("a", cm("none")))
	assert.Empty(t, f.Created("b", cm("app")), "another namespace")

	s.put(annotated("app", "y", "1"))
	f.next(t)
	assert.Equal(t, version, f.Created("a", cm("app")), "its content changes nothing")
	changed := s.put(annotated("app", "y", "2"))
	f.next(t)
	assert.Empty(t, f.Created("a", cm("app")), "it may be selected by what it was not created with")
	s.put(annotated("app", "y", "1"))
	f.next(t)
	assert.Empty(t, f.Created("a", cm("app")), "nor is it known again")

	s.remove(changed)
	f.next(t)
	version = s.put(annotated("app", "y", "1")).GetResourceVersion()
	f.next(t)
	assert.Equal(t, version, f.Created("a", cm("app")), "another object of the name")
}

func TestObserve(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	one := s.put(configMap("a", "one", "x"))
	f := newFixture(t, s, nil)
	assert.Empty(t, f.Cached("a", []reference.Ref{cm("one"), sec("none")}), "nothing is known before the first listing")
	f.start(t)

	meta := digest.State{UID: string(one.GetUID()), ResourceVersion: one.GetResourceVersion()}
	assert.Equal(t, map[reference.Ref]digest.State{cm("one"): meta, sec("none"): {Absent: true}},
		f.Cached("a", []reference.Ref{cm("one"), sec("none")}))
	assert.Empty(t, s.seen(), "observing is no request")

	read, err := f.ReadLive(t.Context(), "a", []reference.Ref{cm("one")})
	require.NoError(t, err)
	assert.Equal(t, read, f.Cached("a", []reference.Ref{cm("one")}), "what was read is kept")

	two := s.put(configMap("a", "one", "y"))
	f.next(t)
	f.next(t)
	assert.Equal(t, two.GetResourceVersion(), f.Cached("a", []reference.Ref{cm("one")})[cm("one")].ResourceVersion)
	assert.Empty(t, f.Cached("a", []reference.Ref{cm("one")})[cm("one")].Entries, "the Entries were of another version")
	assert.Equal(t, []string{"one"}, f.Names("a", reference.ConfigMap))
	assert.Empty(t, f.Names("a", reference.Secret))
}

// ours keeps the annotations of one key.
func ours(key, _ []byte) bool { return string(key) == "ours" }

func TestOwnAnnotationsAndLabels(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	object := configMap("a", "one")
	object.Annotations = map[string]string{annotationNoise: "plain text", "ours/match": "true"}
	object.Labels = map[string]string{"env": "test", "app": "x"}
	s.put(object)
	f := newFixture(t, s, func(o *configstate.Options) {
		o.OwnAnnotations = func(key, value []byte) bool { return string(key) == "ours/match" && len(value) < 10 }
		o.OwnLabels = func(key string) bool { return key == "env" }
	}).start(t)
	assert.Equal(t, map[string]string{"env": "test"}, f.Labels("a", cm("one")))
	assert.Nil(t, f.Labels("a", cm("none")))
	assert.Equal(t, map[string]string{"ours/match": "true"}, f.Annotations("a", cm("one")))
	assert.Nil(t, f.Annotations("a", cm("none")))

	// The mark that ends a streamed list is an annotation of a bookmark. A user can give it to an object, too.
	object.Annotations[metav1.InitialEventsAnnotationKey] = "true"
	for value, want := range map[string]map[string]string{"false": {"ours/match": "false"}, strings.Repeat("x", 200<<10): nil} {
		object.Annotations["ours/match"] = value
		s.put(object)
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			assert.Equal(t, want, f.Annotations("a", cm("one")))
		}, wait, time.Millisecond)
	}
}

func TestRefusedNamespaceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("open", "db", "x"))
	s.put(secret("closed", "db", "x"))
	s.refusing("/api/v1/namespaces/closed", http.StatusForbidden)
	f := newFixture(t, s, func(o *configstate.Options) { o.Namespaces = []string{"open", "closed"} }).start(t)

	assert.Contains(t, f.Cached("open", []reference.Ref{sec("db")}), sec("db"))
	assert.Empty(t, f.Cached("closed", []reference.Ref{sec("db")}), "not absent: nothing is known")
	assert.Empty(t, f.Cached("elsewhere", []reference.Ref{sec("db")}), "out of scope")
	assert.Equal(t, "open", f.next(t).Namespace)

	s.refusing("/api/v1/namespaces/closed", 0)
	assert.Equal(t, configstate.Event{Namespace: "closed", Ref: sec("db"), Type: configstate.Added}, f.next(t),
		"it is tried again, and what is found then is news to who has seen the rest")
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		assert.Len(t, f.logs(), 4, "a failure and a recovery for each of the two kinds, however often it was tried")
	}, wait, time.Millisecond)
	for _, line := range f.logs() {
		assert.Contains(t, line, `"namespace"="closed"`)
	}
}

func TestStoreNeedsAConfigAndARing(t *testing.T) {
	t.Parallel()
	whole := configstate.Options{Config: &rest.Config{}, Ring: func() digest.Ring { return digest.Ring{} }}
	for name, missing := range map[string]configstate.Options{"Config": {Ring: whole.Ring}, "Ring": {Config: whole.Config}} {
		_, err := configstate.New(missing)
		assert.Error(t, err, name)
	}
	_, err := configstate.New(whole)
	assert.NoError(t, err)
}

func TestStoreStartsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, newServer(t), nil).start(t)
	require.Error(t, f.Start(t.Context()), "it can be started once")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, newFixture(t, f.server, nil).WaitForSync(ctx), context.Canceled)
}

func TestListedNamespaceHasBeenListedOrRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(configMap("a", "one"))
	s.refusing("/api/v1/namespaces/closed/secrets", http.StatusForbidden)
	f := newFixture(t, s, func(o *configstate.Options) { o.Namespaces = []string{"a", "closed"} })
	assert.False(t, f.Listed("a"), "before the first listing")
	f.start(t)
	assert.True(t, f.Listed("a"), "ConfigMaps are listed, and Secrets too")
	assert.True(t, f.Listed("closed"), "Secrets are refused: waiting for them would hold up ConfigMaps")
	assert.False(t, f.Listed("elsewhere"), "out of scope")
	assert.True(t, f.Exists("a", cm("one")), "the ConfigMap is in the list")
	assert.False(t, f.Exists("a", sec("one")), "a Secret of the same name is not")
}

func TestKindThatIsNotWatched(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFixture(t, s, func(o *configstate.Options) { o.Without = []reference.Kind{reference.Secret} }).start(t)
	assert.True(t, f.Listed("a"), "nothing else is waited for")
	for _, request := range s.seen() {
		assert.NotContains(t, request, "secrets", "no permission on them is needed")
	}
}
