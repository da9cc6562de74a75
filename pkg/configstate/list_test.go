package configstate_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// manySecrets are those of one workload, in namespace a.
func manySecrets(s *server, n int) []reference.Ref {
	refs := make([]reference.Ref, n)
	for i := range refs {
		refs[i] = sec(fmt.Sprintf("db-%03d", i))
		s.put(secret("a", refs[i].Name, "x"))
	}
	return refs
}

// metaReads are the requests for the metadata of each.
func metaReads(refs []reference.Ref) []string {
	requests := make([]string, len(refs))
	for i, ref := range refs {
		requests[i] = "meta /api/v1/namespaces/a/secrets/" + ref.Name
	}
	return requests
}

// knowing is a Store that has listed all objects and has read those of refs.
func knowing(t *testing.T, s *server, refs []reference.Ref, keys digest.Ring) *fixture {
	t.Helper()
	f := newFixture(t, s, func(o *configstate.Options) { o.Ring = func() digest.Ring { return keys } }).start(t)
	_, err := f.ReadLive(t.Context(), "a", refs)
	require.NoError(t, err)
	s.seen()
	return f
}

func TestLiveListsTheMetadataOfMany(t *testing.T) {
	t.Parallel()
	const list = "list /api/v1/namespaces/a/secrets"
	s := newServer(t)
	keys, refs := digesttest.Ring(t, "1"), manySecrets(s, 20)
	f := knowing(t, s, refs, keys)
	live := func() map[reference.Ref]digest.State {
		t.Helper()
		states, err := f.ReadLive(t.Context(), "a", refs)
		require.NoError(t, err)
		require.Len(t, states, len(refs))
		return states
	}
	before := live()
	assert.Equal(t, []string{list}, s.seen(), "every version is known")

	// The watch delivers none of it.
	s.refusing(lists, http.StatusForbidden)
	s.breakWatches()
	changed := secret("a", refs[3].Name, "y")
	s.put(changed)
	s.remove(secret("a", refs[7].Name, "x"))
	after := live()
	path := "/api/v1/namespaces/a/secrets/" + refs[3].Name
	assert.Equal(t, []string{"get " + path, list}, s.seen(), "one version is new")
	for n, ref := range refs {
		switch n {
		case 3:
			assert.Equal(t, digest.StateOf(digest.OfSecret(changed), string(changed.GetUID()), changed.GetResourceVersion(), keys), after[ref])
		case 7:
			assert.Equal(t, digest.State{Absent: true}, after[ref])
		default:
			assert.Equal(t, before[ref], after[ref])
		}
	}
}

// A list also says which objects are absent, such as those of a long list of names.
func TestLiveListsForManyAbsentObjects(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(secret("a", "other", "x"))
	f := knowing(t, s, nil, digesttest.Ring(t, "1"))
	refs := make([]reference.Ref, 20)
	for i := range refs {
		refs[i] = sec(fmt.Sprintf("db-%03d", i))
	}
	s.put(secret("a", refs[4].Name, "x")) // the watch may not have delivered it
	states, err := f.ReadLive(t.Context(), "a", refs)
	require.NoError(t, err)
	for n, ref := range refs {
		assert.Equal(t, n != 4, states[ref].Absent, "%s", ref)
	}
	assert.ElementsMatch(t, []string{"list /api/v1/namespaces/a/secrets", "get /api/v1/namespaces/a/secrets/" + refs[4].Name}, s.seen())
}

// The lists of an admission request are no sign that the watch of the namespace has lost its connection.
func TestLiveListIsNoneOfTheWatch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	refs := manySecrets(s, 16)
	monitor := &watchhealth.Monitor{}
	f := newFixture(t, s, func(o *configstate.Options) {
		o.Namespaces = []string{"a"}
		o.Config.Wrap(monitor.Wrap)
	}).start(t)
	for range 3 {
		_, err := f.ReadLive(t.Context(), "a", refs)
		require.NoError(t, err)
	}
	assert.Contains(t, s.seen(), "list /api/v1/namespaces/a/secrets")
	statuses := monitor.Statuses()
	assert.Len(t, statuses, 2)
	for _, status := range statuses {
		assert.True(t, status.Healthy(), "%+v", status)
	}
}

func TestLiveReadsOneByOneWhereAListCostsMore(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/a/secrets"
	for name, c := range map[string]struct {
		refs, others int
		spoil        func(s *server)
		want         []string // before the reads of the metadata
	}{
		"few refs":                           {refs: 15},
		"a long list for few of its objects": {refs: 16, others: 49},
		"lists are forbidden":                {refs: 16, spoil: func(s *server) { s.refusing(path+"$", http.StatusForbidden) }},
		"a list that is not complete":        {refs: 16, spoil: func(s *server) { s.more = "more" }, want: []string{"list " + path}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			refs := manySecrets(s, c.refs)
			for n := range c.others {
				s.put(secret("a", fmt.Sprintf("other-%d", n), "x"))
			}
			f := knowing(t, s, refs, digesttest.Ring(t, "1"))
			if c.spoil != nil {
				c.spoil(s)
			}
			states, err := f.ReadLive(t.Context(), "a", refs)
			require.NoError(t, err)
			assert.Len(t, states, len(refs))
			assert.Equal(t, append(c.want, metaReads(refs)...), s.seen())
		})
	}
}

func TestLiveListsWhereAListCostsLess(t *testing.T) {
	t.Parallel()
	const list = "list /api/v1/namespaces/a/secrets"
	for name, c := range map[string]struct {
		others int
		first  []reference.Ref
		want   []string
	}{
		"as few refs as that":   {want: []string{list}},
		"as many other objects": {others: 48, want: []string{list}},
		"behind another kind":   {first: []reference.Ref{cm("app")}, want: []string{"get /api/v1/namespaces/a/configmaps/app", list}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			refs := append(c.first, manySecrets(s, 16)...)
			for n := range c.others {
				s.put(secret("a", fmt.Sprintf("other-%d", n), "x"))
			}
			f := knowing(t, s, refs, digesttest.Ring(t, "1"))
			states, err := f.ReadLive(t.Context(), "a", refs)
			require.NoError(t, err)
			assert.Len(t, states, len(refs))
			assert.Equal(t, c.want, s.seen())
		})
	}
}
