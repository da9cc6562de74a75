package workloadstate

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// definitions is an API server that serves a custom kind as one resource, as another one later, or not at all. As a mapper it knows what was
// served at its last Reset.
type definitions struct {
	mu sync.Mutex
	// served and known are the resource, with its version.
	served, known schema.GroupVersionResource
	// away fails lookups.
	away    error
	resets  int
	asked   []string
	reports []string
}

func gadget() workload.Kind {
	return workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, Template: []string{"spec", "template"}}
}

func resource(version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: name}
}

func (d *definitions) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.away != nil:
		return nil, d.away
	case d.known.Resource == "":
		d.known = d.served // that nothing is known is not kept
	}
	if d.known.Resource == "" || len(versions) > 0 && versions[0] != d.known.Version {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return &meta.RESTMapping{Resource: d.known, GroupVersionKind: gk.WithVersion(d.known.Version), Scope: meta.RESTScopeNamespace}, nil
}

func (d *definitions) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = schema.GroupVersionResource{}
	d.resets++
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
	path := fmt.Sprintf("/apis/example.com/%s/%s", d.served.Version, d.served.Resource)
	answer := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("404 page not found")), Request: r}
	if r.URL.Path == path {
		name := strings.NewReader(initial(d.served.Resource))
		answer.StatusCode, answer.Header = http.StatusOK, http.Header{"Content-Type": {"application/json"}}
		answer.Body = &open{name, r}
	}
	return answer, nil
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

// seen returns what was reported, how often the mapper was reset, and the number of requests since the last call.
func (d *definitions) seen() (reports []string, resets, requests int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	reports, resets, requests = d.reports, d.resets, len(d.asked)
	d.reports, d.resets, d.asked = nil, 0, nil
	return reports, resets, requests
}

func TestDefinitionCreatedAgainWithAnotherNameIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &definitions{served: resource("v1", "gadgets")}
		s := New(Options{Mapper: d, Config: &rest.Config{Host: "http://server", QPS: -1}, HTTPClient: &http.Client{Transport: d}, Discovered: d.discovered, Log: logr.Discard()})
		w, changes := s.Watch(gadget(), nil), make(chan string, 10)
		w.changed = func(before, after workload.Summary) { changes <- formatChange(before, after) }
		ended := make(chan struct{})
		ctx := t.Context()
		go func() {
			defer close(ended)
			w.Run(ctx)
		}()
		await(t, changes, "- > gadgets@5")
		d.seen()

		d.set(schema.GroupVersionResource{}, nil)
		<-time.After(time.Hour)
		reports, resets, requests := d.seen()
		assert.Equal(t, []string{"gadgets.example.com: not installed"}, reports, "this is no failure")
		assert.Equal(t, 1, resets, "the API server answers each later lookup")
		assert.Less(t, requests, 1500, "as often as the longest pause says")

		d.set(schema.GroupVersionResource{}, errors.New("away"))
		<-time.After(2 * time.Minute)
		d.set(resource("v1", "widgets"), nil)
		await(t, changes, "gadgets@5 > -", "- > widgets@5")
		reports, _, _ = d.seen()
		assert.Equal(t, []string{"gadgets.example.com: away", "gadgets.example.com: found"}, reports)
	})
}

// Its workloads exist, and are not seen.
func TestKindServedInOtherVersionsAloneIsAFailure(t *testing.T) {
	t.Parallel()
	d := &definitions{served: resource("v2", "gadgets")}
	l := lookup{of: New(Options{Mapper: d}).Watch(gadget(), nil)}
	for range 2 * versionsEvery {
		_, err := l.find()
		assert.EqualError(t, err, "the cluster serves Gadget.example.com in the version v2, and not in v1: "+
			"name the served version in the workload kinds of the configuration")
		assert.False(t, meta.IsNoMatchError(err), "it is installed")
	}
	d.set(schema.GroupVersionResource{}, nil)
	d.Reset()
	for range versionsEvery {
		_, err := l.find()
		assert.Error(t, err)
	}
	_, err := l.find()
	assert.True(t, meta.IsNoMatchError(err), "it is uninstalled")
}
