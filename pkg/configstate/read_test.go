package configstate_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

func TestStateAtAnEarlierVersion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFixture(t, s, nil)
	keys := digesttest.Ring(t, "1")
	for ref, put := range map[reference.Ref]func(content string) client{
		sec("db"): func(content string) client { return s.put(secret("a", "db", content)) },
		cm("app"): func(content string) client { return s.put(configMap("a", "app", content)) },
	} {
		before := strconv.Itoa(s.version)
		one := put("x")
		first := one.GetResourceVersion()
		want := digest.StateOf(contentOf(one), string(one.GetUID()), first, keys)
		put("y")
		got, err := f.At(t.Context(), "a", ref, first)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%s was replaced since", ref)
		if before != "100" {
			got, err = f.At(t.Context(), "a", ref, before)
			require.NoError(t, err)
			assert.Equal(t, digest.State{Absent: true}, got, "%s was created since", ref)
		}
		_, err = f.At(t.Context(), "a", ref, "100")
		assert.ErrorContains(t, err, "read "+ref.String()+" in namespace a: compacted")
	}
	_, err := f.At(t.Context(), "a", reference.Ref{Kind: "widgets.example.org", Name: "vault"}, "101")
	assert.ErrorContains(t, err, "not kept")
}

func contentOf(object client) digest.Content {
	if s, ok := object.(*corev1.Secret); ok {
		return digest.OfSecret(s)
	}
	return digest.OfConfigMap(object.(*corev1.ConfigMap))
}

func TestReadLiveReturnsTheCurrentContent(t *testing.T) {
	t.Parallel()
	const (
		get  = "get /api/v1/namespaces/a/secrets/db"
		meta = "meta /api/v1/namespaces/a/secrets/db"
	)
	s := newServer(t)
	keys := digesttest.Ring(t, "1")
	var mu sync.Mutex
	f := newFixture(t, s, func(o *configstate.Options) {
		o.Ring = func() digest.Ring {
			mu.Lock()
			defer mu.Unlock()
			return keys
		}
	})
	live := func() digest.State {
		states, err := f.ReadLive(t.Context(), "a", []reference.Ref{sec("db")})
		require.NoError(t, err)
		require.Contains(t, states, sec("db"))
		return states[sec("db")]
	}
	want := func(object client, content digest.Content) digest.State {
		return digest.StateOf(content, string(object.GetUID()), object.GetResourceVersion(), keys)
	}

	assert.Equal(t, digest.State{Absent: true}, live())
	assert.Equal(t, []string{get}, s.seen(), "nothing is known: one request")

	one := secret("a", "db", "x")
	s.put(one)
	assert.Equal(t, want(one, digest.OfSecret(one)), live())
	assert.Equal(t, []string{get}, s.seen(), "nothing is known: one request")

	assert.Equal(t, want(one, digest.OfSecret(one)), live())
	assert.Equal(t, []string{meta}, s.seen(), "this version is known: its metadata is enough")

	two := secret("a", "db", "y")
	s.put(two)
	assert.Equal(t, want(two, digest.OfSecret(two)), live())
	assert.Equal(t, []string{get, meta}, s.seen(), "another version is known, and the new one was not reported")

	mu.Lock()
	keys = digesttest.Ring(t, "12")
	mu.Unlock()
	assert.Equal(t, want(two, digest.OfSecret(two)), live())
	assert.Equal(t, []string{get}, s.seen(), "there is a new key: what is known is of no use")

	s.remove(two)
	assert.Equal(t, digest.State{Absent: true}, live())
	assert.Equal(t, []string{meta}, s.seen())
}

// A load balancer without a route answers 404. That does not show that the object is absent.
func TestNotFoundOfAProxyIsAnError(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	keys := digesttest.Ring(t, "1")
	f := newFixture(t, s, func(o *configstate.Options) { o.Ring = func() digest.Ring { return keys } })
	s.put(secret("a", "db", "x"))
	s.refusing("/api/v1/namespaces/a/secrets/db", http.StatusNotFound)
	for _, request := range []string{"of the object", "of its metadata"} {
		states, err := f.ReadLive(t.Context(), "a", []reference.Ref{sec("db")})
		require.Error(t, err, "the answer to a request %s", request)
		assert.Empty(t, states, "not Absent")
		assert.Len(t, configstate.ReadErrors(err), 1)

		s.refusing("/api/v1/namespaces/a/secrets/db", 0)
		_, err = f.ReadLive(t.Context(), "a", []reference.Ref{sec("db")})
		require.NoError(t, err)
		s.refusing("/api/v1/namespaces/a/secrets/db", http.StatusNotFound)
	}
}

// What was read before is forgotten, so that the object itself is read next; but where the watch has not listed it, only the first
// listing reports its end to those who have read it.
func TestLiveForgetsWhatIsAbsent(t *testing.T) {
	t.Parallel()
	const path = " /api/v1/namespaces/a/secrets/db"
	for name, c := range map[string]struct {
		namespace string
		status    int
		want      string
	}{
		"listed":       {"a", 0, "get" + path},
		"out of scope": {"b", 0, "get" + path},
		"not listed":   {"a", http.StatusForbidden, "meta" + path},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			db := s.put(secret("a", "db", "x"))
			s.refusing("/api/v1/namespaces/a/secrets$", c.status)
			f := newFixture(t, s, func(o *configstate.Options) { o.Namespaces = []string{c.namespace} }).start(t)
			for _, absent := range []bool{false, true, true} {
				if absent {
					s.forget(db) // no watch delivers it
				}
				s.seen()
				states, err := f.ReadLive(t.Context(), "a", []reference.Ref{sec("db")})
				require.NoError(t, err)
				assert.Equal(t, absent, states[sec("db")].Absent)
			}
			assert.Equal(t, []string{c.want}, s.seen())
		})
	}
}

func TestAnotherObjectInTheResponseIsAnError(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.objects["/api/v1/namespaces/a/secrets/db"] = secret("a", "other", "x")
	states, err := newFixture(t, s, nil).ReadLive(t.Context(), "a", []reference.Ref{sec("db")})
	require.ErrorContains(t, err, "the response has an object")
	assert.Empty(t, states)
}

func TestLiveTrustsTheWatchForNews(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(configMap("a", "one", "x"))
	f := newFixture(t, s, nil).start(t)
	_, err := f.ReadLive(t.Context(), "a", []reference.Ref{cm("one")})
	require.NoError(t, err)
	s.put(configMap("a", "one", "y"))
	f.next(t)
	f.next(t)
	s.seen()

	states, err := f.ReadLive(t.Context(), "a", []reference.Ref{cm("one")})
	require.NoError(t, err)
	assert.NotEmpty(t, states[cm("one")].Entries)
	assert.Equal(t, []string{"get /api/v1/namespaces/a/configmaps/one"}, s.seen(), "its metadata would be of no use")
}

func TestErrorsNameTheRef(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("a", "open", "x"))
	s.refusing("/api/v1/namespaces/a/secrets/closed", http.StatusForbidden)
	f := newFixture(t, s, nil)

	for name, read := range map[string]func(context.Context, string, []reference.Ref) (map[reference.Ref]digest.State, error){
		"ReadLive": f.ReadLive, "ReadIfChanged": f.ReadIfChanged,
	} {
		states, err := read(t.Context(), "a", []reference.Ref{sec("open"), sec("closed"), sec("none")})
		require.Error(t, err, name)
		assert.ErrorContains(t, err, "read secret/closed in namespace a:", name)
		failed := configstate.ReadErrors(fmt.Errorf("stamp: %w", err))
		require.Len(t, failed, 1, name)
		assert.Equal(t, sec("closed"), failed[0].Ref, name)
		assert.True(t, apierrors.IsForbidden(failed[0]), name)
		assert.NotEmpty(t, states[sec("open")].Entries, "%s: the others are read nevertheless", name)
		assert.True(t, states[sec("none")].Absent, name)
		assert.NotContains(t, states, sec("closed"), name)
	}
}

// The text is logged and kept for each workload: it must not grow with the number of objects.
func TestTextOfManyErrorsIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("a", "s000", "x"))
	var refs []reference.Ref
	for i := range 300 {
		name := fmt.Sprintf("s%03d", i)
		s.refusing("/api/v1/namespaces/a/secrets/"+name, http.StatusForbidden)
		refs = append(refs, sec(name))
	}
	f := newFixture(t, s, nil)
	_, err := f.ReadLive(t.Context(), "a", refs)
	require.Error(t, err)
	assert.Len(t, configstate.ReadErrors(fmt.Errorf("stamp: %w", err)), 300, "each is there")
	assert.True(t, apierrors.IsForbidden(err), "one of the errors inside is a 403")
	assert.Less(t, len(err.Error()), 1000)
	assert.Contains(t, err.Error(), "read secret/s000 in namespace a: ")
	assert.Contains(t, err.Error(), "; the same failed for secret/s001, secret/s002, ")
	assert.Contains(t, err.Error(), "secret/s007 and 292 more")
	assert.NotContains(t, err.Error(), "s008")

	_, err = f.ReadLive(t.Context(), "a", refs[:1])
	assert.Equal(t, configstate.ReadErrors(err)[0].Error(), err.Error(), "a single one is as it is")
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFixture(t, s, func(o *configstate.Options) { o.Ring = func() digest.Ring { return digest.Ring{} } })
	_, err := f.ReadLive(t.Context(), "a", []reference.Ref{sec("db")})
	require.ErrorIs(t, err, digest.ErrNoKey)
	_, err = f.ReadIfChanged(t.Context(), "a", []reference.Ref{sec("db")})
	require.ErrorIs(t, err, digest.ErrNoKey)
	assert.Empty(t, s.seen())
}

func TestCallersShareOnlyLaterReads(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("a", "db", "old"))
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	s.holding(func(*http.Request) {
		arrived <- struct{}{}
		<-release
	})
	f := newFixture(t, s, nil)
	results := make(chan digest.State, 10)
	read := func(ctx context.Context) {
		states, err := f.ReadLive(ctx, "a", []reference.Ref{sec("db")})
		if err == nil {
			results <- states[sec("db")]
		}
	}
	go read(t.Context())
	<-arrived // its answer is from before the change that follows

	changed := secret("a", "db", "new")
	s.put(changed)
	for range 5 {
		go read(t.Context())
	}
	impatient, cancel := context.WithCancel(t.Context())
	go read(impatient)
	require.Eventually(t, func() bool { return f.Joined() == 5 }, wait, time.Millisecond)
	cancel()

	release <- struct{}{}
	first := <-results
	assert.NotEqual(t, changed.ResourceVersion, first.ResourceVersion)
	close(release)
	for range 5 {
		assert.Equal(t, changed.ResourceVersion, (<-results).ResourceVersion, "no caller gets the version before")
	}
	assert.Len(t, s.seen(), 3, "seven callers, two reads: the object, and then its metadata and the object again")
}

func TestManyRefs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var refs []reference.Ref
	for i := range 200 {
		name := fmt.Sprintf("s%d", i)
		s.put(secret("a", name, name))
		refs = append(refs, sec(name))
	}
	f := newFixture(t, s, nil)
	states, err := f.ReadLive(t.Context(), "a", refs)
	require.NoError(t, err)
	assert.Len(t, states, 200)
	assert.Len(t, s.seen(), 200)
}
