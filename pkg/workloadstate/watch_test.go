package workloadstate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// formatChange formats one call of Changed: the names with the versions before and after, and the version of the first listing.
func formatChange(before, after workload.Summary, listed string) string {
	text := func(s workload.Summary) string {
		if s.Kept == nil {
			return "-"
		}
		return s.Name() + "@" + s.ResourceVersion()
	}
	if listed != "" {
		listed = " in " + listed
	}
	return text(before) + " > " + text(after) + listed
}

// run runs a Watch until the test ends and returns what it reports.
func run(t *testing.T, s *Source) (*Watch, <-chan string) {
	t.Helper()
	reports := make(chan string, 100)
	w := s.Watch(workload.Deployment(), func(before, after workload.Summary, listed string) {
		reports <- formatChange(before, after, listed)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w, reports
}

func await(t *testing.T, reports <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		assert.Equal(t, w, <-reports)
	}
}

func TestWatchReportsEachChange(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.watches[""] = []string{
		event("ADDED", deployment("shop", "b", 1)) + event("ADDED", deployment("shop", "a", 2)) + initialEnd(5),
	}
	w, reports := run(t, server.source(logr.Discard()))
	await(t, reports, "- > a@2 in 5", "- > b@1 in 5")
	server.send("", event("MODIFIED", deployment("shop", "a", 6)))
	await(t, reports, "a@2 > a@6")
	a, ok := w.Get("shop", "a")
	require.True(t, ok, "the workload was listed")
	assert.Equal(t, "6", a.ResourceVersion())
	assert.Equal(t, map[string]string{"keep": "6"}, a.Annotations())
	assert.True(t, a.HasTemplate(), "its template is kept")
	assert.Equal(t, workload.Deployment(), a.Kind)

	server.send("", event("DELETED", deployment("shop", "a", 7)))
	await(t, reports, "a@6 > -")
	_, ok = w.Get("shop", "a")
	assert.False(t, ok, "the workload was deleted")
	_, ok = w.Get("shop", "b")
	assert.True(t, ok, "the other one of the namespace")
	server.send("", event("DELETED", deployment("shop", "a", 8))+event("ADDED", deployment("bank", "a", 9)))
	await(t, reports, "- > a@9") // what is not known does not go
	_, ok = w.Get("shop", "a")
	assert.False(t, ok, "it is in another namespace")
	assert.Equal(t, []string{"watch /apis/apps/v1/deployments "}, server.requests())
}

// A listing after an interruption reports what differs, and what is as it was: a write may be lost.
func TestListingReplacesWhatWasKnown(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.watches[""] = []string{
		"422", "", "422", "", // no streaming lists
	}
	server.lists[""] = []string{
		listOf(5, deployment("shop", "a", 1), deployment("shop", "b", 2), deployment("bank", "c", 3)),
		listOf(9, deployment("shop", "a", 1), deployment("shop", "b", 7), deployment("shop", "d", 8)),
	}
	w, reports := run(t, server.source(logr.Discard()))
	await(t, reports, "- > c@3 in 5", "- > a@1 in 5", "- > b@2 in 5")
	server.send("", event("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`))
	await(t, reports, "c@3 > -", "a@1 > a@1", "b@2 > b@7", "- > d@8")
	_, ok := w.Get("bank", "c")
	assert.False(t, ok, "the second list does not have it")
	server.send("", event("MODIFIED", deployment("shop", "a", 10)))
	await(t, reports, "a@1 > a@10")
}

// The watch cache of an API server may have a version from before the last writes of other kinds: a config object that was created before
// the list would be later than its version.
func TestFirstListIsOfThePresent(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.watches[""] = []string{"422", "", "422", ""} // no streaming lists
	server.lists[""] = []string{listOf(5, deployment("shop", "a", 1)), listOf(9, deployment("shop", "a", 7))}
	_, reports := run(t, server.source(logr.Discard()))
	await(t, reports, "- > a@1 in 5")
	server.send("", event("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`))
	await(t, reports, "a@1 > a@7")
	lists := slices.DeleteFunc(server.requests(), func(request string) bool { return strings.HasPrefix(request, "watch") })
	assert.Equal(t, []string{"list /apis/apps/v1/deployments ", "list /apis/apps/v1/deployments 5"}, lists)
}

func TestEachNamespaceHasAFirstListing(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	for _, namespace := range []string{"shop", "bank"} {
		server.watches[namespace] = []string{event("ADDED", deployment(namespace, "a", 1)) + initialEnd(5)}
	}
	_, reports := run(t, server.source(logr.Discard(), "shop", "bank"))
	await(t, reports, "- > a@1 in 5", "- > a@1 in 5")
}

// keptAt is what a Watch keeps of a Deployment.
func keptAt(namespace, name, uid, version string) *workload.Kept {
	metadata := map[string]any{"namespace": namespace, "name": name, "uid": uid, "resourceVersion": version}
	return workload.Object{Kind: workload.Deployment(), Raw: map[string]any{"metadata": metadata}}.Keep(workload.Keep{})
}

// An etcd that was restored gives versions a second time.
func TestListingFindsWhatWasCreatedAgainWithTheSameVersion(t *testing.T) {
	t.Parallel()
	var changes []string
	w := New(Options{Mapper: mapper()}).Watch(workload.Deployment(), func(before, after workload.Summary, _ string) {
		changes = append(changes, before.UID()+" > "+after.UID())
	})
	w.replace("", []*workload.Kept{keptAt("shop", "a", "1", "5")}, "")
	w.replace("", []*workload.Kept{keptAt("shop", "a", "1", "5")}, "")
	w.replace("", []*workload.Kept{keptAt("shop", "a", "2", "5")}, "")
	assert.Equal(t, []string{" > 1", "1 > 1", "1 > 2"}, changes, "one that is as it was is reported, too: a write may be lost")
}

func TestListingOfANamespaceAmongManyRemovesWhatIsGone(t *testing.T) {
	t.Parallel()
	gone := 0
	w := New(Options{Mapper: mapper()}).Watch(workload.Deployment(), func(_, after workload.Summary, _ string) {
		if after.Kept == nil {
			gone++
		}
	})
	const namespaces = 30
	for n := range namespaces {
		w.put(keptAt(fmt.Sprint("n", n), "a", "1", "1"), "")
	}
	for n := range namespaces {
		w.replace(fmt.Sprint("n", n), nil, "")
		assert.Equal(t, n+1, gone)
	}
}

func TestNamespacesAreWatchedOneByOne(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	server.watches["shop"] = []string{"422", "", "422", ""}
	server.lists["shop"] = []string{listOf(5, deployment("shop", "a", 1)), listOf(8)}
	server.watches["bank"] = []string{"422", "403", "403"}
	w, reports := run(t, server.source(logr.Discard(), "shop", "bank"))
	await(t, reports, "- > a@1 in 5")
	w.put(workload.Object{Kind: workload.Deployment(), Raw: map[string]any{"metadata": map[string]any{"namespace": "bank", "name": "b"}}}.Keep(w.source.options.Keep), "")
	await(t, reports, "- > b@")
	server.send("shop", event("ERROR", `{"kind":"Status","status":"Failure","reason":"Expired","code":410}`))
	await(t, reports, "a@1 > -")
	_, ok := w.Get("bank", "b")
	assert.True(t, ok, "a listing of one namespace says nothing about another")
	for _, request := range server.requests() {
		assert.Contains(t, request, "/apis/apps/v1/namespaces/")
	}
}

// refusing says that a kind is not served, and counts how often it is asked.
type refusing struct {
	fixed

	asked atomic.Int32
}

func (r *refusing) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	r.asked.Add(1)
	return r.RESTMapper.RESTMapping(kind, versions...)
}

func TestUnservedKindIsTriedUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, lines := logtest.New()
		mapper := &refusing{fixed: fixed{meta.NewDefaultRESTMapper(nil)}}
		s := New(Options{Mapper: mapper, Log: log})
		w := s.Watch(workload.Deployment(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			w.Run(ctx)
			close(ended)
		}()
		<-time.After(time.Minute)
		assert.Greater(t, mapper.asked.Load(), int32(3))
		assert.Equal(t, 1, lines.Count("does not serve this workload kind"), "it can stay so")
		cancel()
		<-ended
	})
}

// failing finds a kind after some failures.
type failing struct {
	fixed

	errs []error
}

func (f *failing) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, err
	}
	return f.RESTMapper.RESTMapping(kind, versions...)
}

// No request for the kind is sent that would show that its workloads are not seen.
func TestFailureToFindTheResourceIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known := meta.NewDefaultRESTMapper(nil)
		known.Add(workload.Deployment().GroupVersionKind, meta.RESTScopeNamespace)
		away, none := errors.New("away"), &meta.NoKindMatchError{}
		var reports []string
		s := New(Options{
			Mapper: &failing{fixed{known}, []error{away, none}}, Config: &rest.Config{}, HTTPClient: http.DefaultClient, Log: logr.Discard(),
			Namespaces: []string{"bank", "shop"},
			Discovered: func(about watchhealth.Watch, err error) { reports = append(reports, fmt.Sprint(about, ": ", err)) },
		})
		l := lookup{of: s.Watch(workload.Deployment(), nil)}
		_, ok := l.findFirst(t.Context())
		require.True(t, ok, "the third lookup succeeds")
		var want []string
		for _, err := range []any{away, none, nil} {
			for _, namespace := range []string{"bank", "shop"} {
				want = append(want, fmt.Sprint("deployments.apps in namespace ", namespace, ": ", err))
			}
		}
		assert.Equal(t, want, reports)
	})
}

func TestEachFailureToFindTheResourceIsLoggedOnce(t *testing.T) {
	t.Parallel()
	away, none := errors.New("away"), &meta.NoKindMatchError{}
	for name, tc := range map[string]struct {
		errs                  []error
		unserved, away, found int
	}{
		"found at once":    {},
		"not installed":    {[]error{none, none, none}, 1, 0, 1},
		"away":             {[]error{away, away, away}, 0, 1, 1},
		"one of each kind": {[]error{away, away, none, none, away}, 1, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				known := meta.NewDefaultRESTMapper(nil)
				known.Add(workload.Deployment().GroupVersionKind, meta.RESTScopeNamespace)
				log, lines := logtest.New()
				s := New(Options{Mapper: &failing{fixed{known}, tc.errs}, Config: &rest.Config{}, HTTPClient: http.DefaultClient, Log: log})
				_, ok := (&lookup{of: s.Watch(workload.Deployment(), nil)}).findFirst(t.Context())
				require.True(t, ok, "the last lookup succeeds")
				assert.Equal(t, tc.unserved, lines.Count("does not serve this workload kind"))
				assert.Equal(t, tc.away, lines.Count("cannot watch this workload kind"))
				assert.Equal(t, tc.found, lines.Count("found this workload kind"))
				assert.Len(t, lines(), tc.unserved+tc.away+tc.found)
			})
		})
	}
}

func TestEndOfTheProgramIsNoFailureToFindTheResource(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := New(Options{
		Mapper: &failing{errs: []error{context.Canceled}}, Log: logr.Discard(),
		Discovered: func(about watchhealth.Watch, err error) { assert.Fail(t, "reported", "%v: %v", about, err) },
	})
	l := lookup{of: s.Watch(workload.Deployment(), nil)}
	_, ok := l.findFirst(ctx)
	assert.False(t, ok, "the program ends before the resource is found")
}

func TestRefusalInANamespaceNamesIt(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	log, lines := logtest.New()
	server.watches["shop"] = []string{"403", event("ADDED", deployment("shop", "a", 1)) + initialEnd(5)}
	_, reports := run(t, server.source(log, "shop"))
	await(t, reports, "- > a@1 in 5")
	assert.Eventually(t, func() bool { return lines.Count(`"namespace"="shop"`) == 2 }, 10*time.Second, time.Millisecond, "the refusal, and its end")
}

func TestRefusalIsLoggedOnceAndTriedAgain(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	log, lines := logtest.New()
	server.watches[""] = []string{"403", "403", event("ADDED", deployment("shop", "a", 1)) + initialEnd(5)}
	server.lists[""] = []string{"403", "403"}
	_, reports := run(t, server.source(log))
	await(t, reports, "- > a@1 in 5")
	server.send("", event("MODIFIED", deployment("shop", "a", 2)))
	await(t, reports, "a@1 > a@2")
	assert.Equal(t, 1, lines.Count("cannot watch; retrying"))
	assert.Eventually(t, func() bool { return lines.Count("watching again") == 1 }, 10*time.Second, time.Millisecond)
	assert.Regexp(t, "^watch", server.requests()[0])
}
