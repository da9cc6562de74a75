package configstate_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// lists are the prefix of requests that list or watch Secrets, and of no others.
const lists = "/api/v1/secrets"

// blind is a Store whose watch of Secrets has worked for a while and is refused now.
func blind(t *testing.T, s *server) *fixture {
	t.Helper()
	f := newFixture(t, s, func(o *configstate.Options) {
		o.OwnAnnotations = ours
	}).start(t)
	f.next(t)
	s.refusing(lists, http.StatusForbidden)
	s.breakWatches()
	return f
}

func TestRecheckReportsWhatTheWatchDoesNot(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	first := secret("a", "db", "x")
	first.Annotations = map[string]string{"ours": "yes"}
	s.put(first)
	f := blind(t, s)
	check := func(name string) {
		t.Helper()
		require.NoError(t, f.Recheck(t.Context(), "a", sec(name)))
	}
	state := func() digest.State { return f.Cached("a", []reference.Ref{sec("db")})[sec("db")] }

	check("db")
	check("none")
	assert.Empty(t, f.events, "nothing has changed")

	second := s.put(secret("a", "db", "y"))
	check("db")
	assert.Equal(t, configstate.Event{Namespace: "a", Ref: sec("db"), Type: configstate.Modified}, f.next(t))
	assert.Equal(t, second.GetResourceVersion(), state().ResourceVersion)
	assert.Empty(t, f.Annotations("a", sec("db")), "its annotation was removed")
	check("db")
	assert.Empty(t, f.events, "it is reported once")

	s.remove(second)
	check("db")
	assert.Equal(t, configstate.Event{Namespace: "a", Ref: sec("db"), Type: configstate.Deleted}, f.next(t))
	assert.True(t, state().Absent, "the Secret was deleted")

	s.put(secret("a", "db", "z"))
	check("db")
	assert.Equal(t, configstate.Event{Namespace: "a", Ref: sec("db"), Type: configstate.Added}, f.next(t))
	assert.Empty(t, f.Created("a", sec("db")), "it may have been created long before")
}

func TestRecheckOfAWatchThatNeverWorked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("a", "db", "x"))
	s.refusing(lists, http.StatusForbidden)
	f := newFixture(t, s, nil).start(t)
	require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
	assert.Equal(t, configstate.Event{Namespace: "a", Ref: sec("db"), Type: configstate.Added}, f.next(t))
	assert.Empty(t, f.Cached("a", []reference.Ref{sec("other")}), "an object that was not read is not absent")
	s.put(secret("a", "db", "y"))
	require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
	assert.Equal(t, configstate.Event{Namespace: "a", Ref: sec("db"), Type: configstate.Modified}, f.next(t))
}

// The listing after the permission has come back has the version that was read: there is no Event that would correct the annotations and
// labels.
func TestRecheckReadsAnnotationsAndLabels(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	annotated := func(value string) {
		db := secret("a", "db", "x")
		db.Annotations, db.Labels = map[string]string{"ours": value, "other": "x"}, map[string]string{"ours": value}
		s.put(db)
	}
	annotated("first")
	s.refusing(lists, http.StatusForbidden)
	label := func(key string) bool { return key == "ours" }
	f := newFixture(t, s, func(o *configstate.Options) { o.OwnAnnotations, o.OwnLabels = ours, label }).start(t)
	check := func(want string) {
		t.Helper()
		assert.Equal(t, map[string]string{"ours": want}, f.Annotations("a", sec("db")))
		assert.Equal(t, map[string]string{"ours": want}, f.Labels("a", sec("db")))
	}
	for _, value := range []string{"first", "second"} {
		annotated(value)
		require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
		f.next(t)
		check(value)
	}
	s.refusing(lists, 0)
	s.put(secret("a", "web", "x"))
	assert.Equal(t, sec("web"), f.next(t).Ref, "the version of the other one is known")
	check("second")
}

func TestRecheckLeavesWhatTheWatchDeliversMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *server, old client){
		"modified": func(s *server, _ client) { s.put(secret("a", "db", "y")) },
		"deleted":  func(s *server, old client) { s.remove(old) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			old := s.put(secret("a", "db", "x"))
			f := newFixture(t, s, nil).start(t)
			f.next(t)
			// The change arrives after the read has begun, and before its answer is taken in.
			s.holding(func(*http.Request) {
				change(s, old)
				f.next(t)
				s.holding(nil)
			})
			before := s.version
			require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
			assert.Greater(t, s.version, before)
			assert.Empty(t, f.events)
		})
	}
}

func TestRecheckOutOfScopeSendsNoRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFixture(t, s, func(o *configstate.Options) { o.Namespaces = []string{"a"} }).start(t)
	require.NoError(t, f.Recheck(t.Context(), "b", sec("db")))
	assert.Empty(t, s.seen())
}

func TestRecheckThatFailsNamesTheObject(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := newFixture(t, s, nil).start(t)
	s.refusing("/api/v1/namespaces", http.StatusForbidden)
	err := f.Recheck(t.Context(), "a", sec("db"))
	require.Len(t, configstate.ReadErrors(err), 1)
	assert.ErrorContains(t, err, "secret/db")
}

// The reads of a round overlap where the API server takes longer than the pause between them.
func TestRechecksThatOverlapAreAllTakenIn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("a", "db", "x"))
	s.put(secret("a", "web", "x"))
	f := blind(t, s)
	f.next(t)
	s.put(secret("a", "db", "y"))
	s.put(secret("a", "web", "y"))
	s.holding(func(*http.Request) {
		s.holding(nil)
		require.NoError(t, f.Recheck(t.Context(), "a", sec("web")))
	})
	require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
	assert.Equal(t, sec("web"), f.next(t).Ref)
	require.NotEmpty(t, f.events, "of two objects, one says nothing of the other")
	assert.Equal(t, sec("db"), f.next(t).Ref)
}

// Only those who have read an object know of it while no watch has shown it: its end must be reported all the same.
func TestObjectThatWasOnlyReadIsReportedAsDeleted(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(t *testing.T, s *server, f *fixture){
		"by a recheck": func(t *testing.T, _ *server, f *fixture) {
			t.Helper()
			require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
		},
		"by the first listing": func(_ *testing.T, s *server, _ *fixture) { s.refusing(lists, 0) },
		"by a recheck, after another reader": func(t *testing.T, _ *server, f *fixture) {
			t.Helper()
			read, err := f.ReadLive(t.Context(), "a", []reference.Ref{sec("db")})
			require.NoError(t, err)
			require.True(t, read[sec("db")].Absent, "the Secret was deleted")
			require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			db := s.put(secret("a", "db", "x"))
			s.refusing(lists, http.StatusForbidden)
			f := newFixture(t, s, nil).start(t)
			read, err := f.ReadIfChanged(t.Context(), "a", []reference.Ref{sec("db")})
			require.NoError(t, err)
			require.NotEmpty(t, read[sec("db")].Entries)
			s.forget(db)
			find(t, s, f)
			assert.Equal(t, configstate.Event{Namespace: "a", Ref: sec("db"), Type: configstate.Deleted}, f.next(t))
			require.NoError(t, f.Recheck(t.Context(), "a", sec("db")))
			assert.Empty(t, f.events, "once")
		})
	}
}
