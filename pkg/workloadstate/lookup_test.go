package workloadstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// definitions is an API server that serves a custom kind as one resource, as another one later, or not at all. It is a Mapper, too.
type definitions struct {
	mu     sync.Mutex
	served schema.GroupVersionResource
	// away fails lookups, unlisted those of all versions.
	away, unlisted error
	// blip answers the next list or watch with 404, and lookups are away from then on.
	blip bool
	// hides answers lists or watches of a namespace with 404, whatever lookups find; nil none.
	hides func(namespace string, watch bool) bool
	// known is what the Mapper knows, used how often it has got to know something else, fresh how often the API server was to be asked.
	known   *finder
	used    int
	fresh   int
	asked   []string
	reports []string
}

// finder asks for what it does not know. That a version is not served is not kept, which versions there are is.
type finder struct {
	of       *definitions
	known    schema.GroupVersionResource
	versions bool
}

func gadget() workload.Kind {
	return workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, Template: []string{"spec", "template"}}
}

func resource(version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: name}
}

func (f *finder) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	all := len(versions) == 0
	if f.known.Resource == "" || !all && versions[0] != f.known.Version {
		served := f.of.served
		switch {
		case all && f.versions:
		case f.of.away != nil:
			return nil, f.of.away
		case all && f.of.unlisted != nil:
			return nil, f.of.unlisted
		case all:
			f.known, f.versions = served, true
		case versions[0] == served.Version:
			f.known = served
		}
	}
	if f.known.Resource == "" || !all && versions[0] != f.known.Version {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return &meta.RESTMapping{Resource: f.known, GroupVersionKind: gk.WithVersion(f.known.Version), Scope: meta.RESTScopeNamespace}, nil
}

func (d *definitions) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	d.mu.Lock()
	if d.known == nil {
		d.known = &finder{of: d}
	}
	known := d.known
	d.mu.Unlock()
	return known.RESTMapping(gk, versions...)
}

func (d *definitions) Fresh() (Finder, func() error, error) {
	d.mu.Lock()
	d.fresh++
	d.mu.Unlock()
	fresh := &finder{of: d}
	return fresh, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.known = fresh
		d.used++
		return nil
	}, nil
}

func (d *definitions) set(served schema.GroupVersionResource, away error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.served, d.away = served, away
}

// RoundTrip answers a list, and refuses all watches of what is not served.
func (d *definitions) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r.URL.Path)
	watching := r.URL.Query().Get("watch") == "true"
	answer := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("404 page not found")), Request: r}
	if d.blip {
		d.blip, d.away = false, errors.New("away")
	} else if namespace, served := d.serves(r.URL.Path); served && (d.hides == nil || !d.hides(namespace, watching)) {
		answer.StatusCode, answer.Header = http.StatusOK, http.Header{"Content-Type": {"application/json"}}
		list := `{"apiVersion":"example.com/v1","kind":"GadgetList","metadata":{"resourceVersion":"5"},"items":[]}`
		answer.Body = io.NopCloser(strings.NewReader(list))
		if watching {
			answer.Body = &open{strings.NewReader(initial(d.served.Resource)), r}
		}
	}
	return answer, nil
}

// serves returns the namespace of a path; false where it is not one of the resource.
func (d *definitions) serves(path string) (namespace string, ok bool) {
	path, ok = strings.CutPrefix(path, fmt.Sprintf("/apis/example.com/%s/", d.served.Version))
	if in, namespaced := strings.CutPrefix(path, "namespaces/"); namespaced {
		namespace, path, _ = strings.Cut(in, "/")
	}
	return namespace, ok && path == d.served.Resource
}

// open is a stream that ends with its request.
type open struct {
	io.Reader
	request *http.Request
}

func (o *open) Read(p []byte) (int, error) {
	if n, err := o.Reader.Read(p); err == nil {
		return n, nil
	}
	select {
	case <-o.request.Context().Done():
	case <-time.After(time.Minute):
	}
	return 0, io.EOF
}

func (o *open) Close() error { return nil }

func initial(name string) string {
	return event("ADDED", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"namespace":"shop","name":%q,"uid":"u","resourceVersion":"5"},"spec":{}}`, name)) +
		event("BOOKMARK", `{"kind":"Gadget","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}`)
}

func (d *definitions) discovered(about watchhealth.Watch, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	outcome := "found"
	if meta.IsNoMatchError(err) {
		outcome = "not installed"
	} else if err != nil {
		outcome = err.Error()
	}
	if report := about.String() + ": " + outcome; len(d.reports) == 0 || d.reports[len(d.reports)-1] != report {
		d.reports = append(d.reports, report)
	}
}

// lookups returns how many fresh Finders were made.
func (d *definitions) lookups() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fresh
}

// seen returns what was reported, how often a fresh Finder was used, and the number of requests since the last call.
func (d *definitions) seen() (reports []string, used, requests int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	reports, used, requests = d.reports, d.used, len(d.asked)
	d.reports, d.used, d.asked = nil, 0, nil
	return reports, used, requests
}

// followed runs the watch of a kind that is served as gadgets.
func followed(t *testing.T) (*definitions, <-chan string) {
	t.Helper()
	d := &definitions{served: resource("v1", "gadgets")}
	s := New(Options{Mapper: d, Config: &rest.Config{Host: "http://server", QPS: -1}, HTTPClient: &http.Client{Transport: d}, Discovered: d.discovered, Log: logr.Discard()})
	w, changes := s.Watch(gadget(), nil), make(chan string, 10)
	w.changed = func(before, after workload.Summary, listed string) { changes <- formatChange(before, after, listed) }
	go w.Run(t.Context())
	await(t, changes, "- > gadgets@5 in 5")
	d.seen()
	return d, changes
}

func TestDefinitionCreatedAgainWithAnotherNameIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, changes := followed(t)
		d.set(schema.GroupVersionResource{}, nil)
		<-time.After(time.Hour)
		reports, used, requests := d.seen()
		assert.Equal(t, []string{"gadgets.example.com: not installed"}, reports, "this is no failure")
		assert.Zero(t, used, "all other kinds are as they were")
		assert.Less(t, requests, 1500, "as often as the longest pause says")
		assert.LessOrEqual(t, d.lookups(), (120+6)*11/10, "one in 30 s, after 6 shorter pauses, and one in ten for the versions: each asks for all that the cluster serves")

		d.set(schema.GroupVersionResource{}, errors.New("away"))
		<-time.After(2 * time.Minute)
		d.set(resource("v1", "widgets"), nil)
		await(t, changes, "gadgets@5 > -", "- > widgets@5")
		reports, used, _ = d.seen()
		still := func(report string) bool { return report == "gadgets.example.com: not installed" } // before the first lookup that fails
		assert.Equal(t, []string{"gadgets.example.com: away", "gadgets.example.com: found"}, slices.DeleteFunc(reports, still))
		assert.Equal(t, 1, used)
	})
}

// The definition is replaced: the watch works again before a lookup fails.
func TestFailedLookupIsRepeatedWhileTheWatchWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := followed(t)
		d.mu.Lock()
		d.blip = true
		d.mu.Unlock()
		<-time.After(3 * time.Minute)
		d.set(resource("v1", "gadgets"), nil)
		<-time.After(time.Minute)
		reports, used, _ := d.seen()
		assert.Empty(t, reports, "the watch works")
		assert.Zero(t, used, "it is served as before")
		lookups := d.lookups()
		<-time.After(3 * time.Minute)
		assert.Equal(t, lookups, d.lookups(), "it is found")
	})
}

// Two watches of the kind, in two namespaces, may find that a resource is gone: the second one after the new one is followed.
func TestLossOfTheResourceBeforeTheLastIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{served: resource("v1", "widgets")}
		w := New(Options{Mapper: d, Log: logr.Discard()}).Watch(gadget(), nil)
		w.target.Store(&target{resource: resource("v1", "widgets").GroupResource()})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { (&lookup{of: w}).follow(ctx) })
		w.unservedBy(apierrors.NewNotFound(schema.GroupResource{}, ""), &target{resource: resource("v1", "gadgets").GroupResource()})
		<-time.After(time.Hour)
		assert.Zero(t, d.lookups())
		cancel()
		running.Wait()
	})
}

// forgetful is a Mapper whose shared part knows nothing, or what was before.
type forgetful struct {
	*definitions

	err error
	was schema.GroupVersionResource
}

func (f forgetful) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &meta.RESTMapping{Resource: f.was, GroupVersionKind: gk.WithVersion(versions[0]), Scope: meta.RESTScopeNamespace}, nil
}

func TestSharedMapperLearnsOfAResourceThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, mapper := range map[string]forgetful{
		"it knows nothing":   {err: &meta.NoKindMatchError{}},
		"it knows the other": {was: resource("v1", "widgets")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mapper.definitions = &definitions{served: resource("v1", "gadgets")}
			l := lookup{of: New(Options{Mapper: mapper, Log: logr.Discard(), Config: &rest.Config{}, HTTPClient: http.DefaultClient}).Watch(gadget(), nil)}
			to, err := l.renewed(&target{resource: resource("v1", "gadgets").GroupResource()})
			require.NoError(t, err)
			assert.Equal(t, "gadgets.example.com", to.resource.String())
			_, used, _ := mapper.seen()
			assert.Equal(t, 1, used)
		})
	}
}

// Its workloads exist, and are not seen.
func TestKindServedInOtherVersionsAloneIsAFailure(t *testing.T) {
	t.Parallel()
	d := &definitions{}
	l := lookup{of: New(Options{Mapper: d}).Watch(gadget(), nil)}
	lookups := func() (err error) {
		for range versionsEvery {
			_, err = l.find(d)
			assert.Error(t, err)
		}
		return err
	}
	assert.True(t, meta.IsNoMatchError(lookups()), "it is not installed")
	for _, away := range []error{nil, errors.New("away"), nil} {
		d.set(resource("v2", "gadgets"), away)
		if err := lookups(); away != nil {
			assert.ErrorIs(t, err, away)
			continue
		}
		_, err := l.find(d)
		assert.EqualError(t, err, "the cluster serves Gadget.example.com in the version v2, and not in v1: "+
			"name the served version in the workload kinds of the configuration")
		assert.False(t, meta.IsNoMatchError(err), "it is installed")
	}
	d.set(schema.GroupVersionResource{}, nil)
	assert.True(t, meta.IsNoMatchError(lookups()), "it is uninstalled")
}

func TestVersionsAreAskedForUntilThereIsAnAnswer(t *testing.T) {
	t.Parallel()
	d := &definitions{served: resource("v2", "gadgets"), unlisted: errors.New("away")}
	l := lookup{of: New(Options{Mapper: d}).Watch(gadget(), nil)}
	_, err := l.find(d)
	assert.True(t, meta.IsNoMatchError(err), "%v", err)
	d.unlisted = nil
	_, err = l.find(d)
	assert.ErrorContains(t, err, "in the version v2")
}

// hanging is a Mapper whose shared part must not be asked: while it waits for an answer, it answers nothing about any kind.
type hanging struct {
	Mapper

	t *testing.T
}

func (h hanging) RESTMapping(gk schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	assert.Fail(h.t, "the shared Mapper is asked", gk)
	return nil, errors.New("no answer")
}

func TestFirstLookupDoesNotKeepTheLookupsOfOtherKindsWaiting(t *testing.T) {
	t.Parallel()
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(gadget().GroupVersionKind, meta.RESTScopeNamespace)
	s := New(Options{Mapper: hanging{fixed{known}, t}, Config: &rest.Config{}, HTTPClient: http.DefaultClient, Log: logr.Discard()})
	l := lookup{of: s.Watch(gadget(), nil)}
	found, ok := l.findFirst(t.Context())
	require.True(t, ok, "the lookup does not wait for the other kind")
	assert.Equal(t, "gadgets.example.com", found.resource.String())
}
