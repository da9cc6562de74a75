package watchhealth

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Watch names what a list or a watch is about.
type Watch struct {
	// Resource is written as in the rule of a Role: "secrets", "deployments.apps"; with the name of the object where only that
	// is watched: "secrets/pod-reloader-digest-key".
	Resource string
	// Namespace is empty for all namespaces, and for a resource that has none.
	Namespace string
}

// String is for messages.
func (w Watch) String() string {
	if w.Namespace == "" {
		return w.Resource
	}
	return w.Resource + " in namespace " + w.Namespace
}

// builtIn reports whether each API server has the resource. The group of a custom one has a dot.
func (w Watch) builtIn() bool {
	resource, _, _ := strings.Cut(w.Resource, "/")
	return strings.Count(resource, ".") < 2
}

// compare sorts.
func (w Watch) compare(other Watch) int {
	return cmp.Or(cmp.Compare(w.Resource, other.Resource), cmp.Compare(w.Namespace, other.Namespace))
}

// request is a list or a watch.
type request struct {
	about Watch
	watch bool
	// streaming watches ask for the present state as initial events, which older API servers do not have.
	streaming bool
	// fromCache marks the list of a reflector, page the later pages of one.
	fromCache, page bool
	// versioned requests name a version, which may have expired.
	versioned bool
	// first marks the list of one object by which a client finds out whether a watch may go on.
	first bool
	// client is what NewClient has set.
	client any
}

// parse reads a request; false if it is neither a list nor a watch.
func parse(r *http.Request) (request, bool) {
	about, ok := collection(r.URL.Path)
	if r.Method != http.MethodGet || !ok {
		return request{}, false
	}
	query := r.URL.Query()
	if name := oneName(query); name != "" {
		about.Resource += "/" + name
	}
	watch, version := query.Get("watch"), query.Get("resourceVersion")
	return request{
		about:     about,
		watch:     watch == "true" || watch == "1",
		streaming: query.Get("sendInitialEvents") == "true",
		fromCache: query.Has("resourceVersion"),
		page:      query.Has("continue"),
		first:     query.Get("limit") == "1" && !query.Has("continue"),
		versioned: version != "" && version != "0" || query.Has("continue"),
		client:    r.Context().Value(newClient{}),
	}, true
}

// collection reads a path like /apis/apps/v1/namespaces/shop/deployments. The address of the API server may have a path of
// its own in front of it.
func collection(path string) (Watch, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	for len(parts) > 0 && parts[0] != "api" && parts[0] != "apis" {
		parts = parts[1:]
	}
	switch {
	case len(parts) > 2 && parts[0] == "api": // api, version
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis": // apis, group, version
		group, parts = "."+parts[1], parts[3:]
	default:
		return Watch{}, false
	}
	switch {
	case len(parts) == 1:
		return Watch{Resource: parts[0] + group}, true
	case len(parts) == 3 && parts[0] == "namespaces":
		return Watch{Resource: parts[2] + group, Namespace: parts[1]}, true
	default:
		return Watch{}, false
	}
}

// oneName returns the name of the one object that a list or watch is limited to.
func oneName(query url.Values) string {
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

// unwatched is the key of the value that Unwatched sets.
type unwatched struct{}

// Unwatched returns a context for lists that belong to no watch. Without it, a list of the objects of a namespace that is also
// watched counts as one of that watch.
func Unwatched(ctx context.Context) context.Context {
	return context.WithValue(ctx, unwatched{}, true)
}

// isUnwatched reports whether a context is one of Unwatched.
func isUnwatched(ctx context.Context) bool { return ctx.Value(unwatched{}) != nil }

// newClient is the key of the value that NewClient sets.
type newClient struct{}

// NewClient returns a context for the lists and watches of a client that takes the place of another one. That may have given up its list
// between two pages: a new list is no sign then that it could not use the first one.
func NewClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, newClient{}, new(byte)) // each is another one
}

// retried is the key of the value that Retried sets.
type retried struct{}

// Retried returns a context for reads that the caller repeats by itself: a failure is reported at once, whatever pause its answer asks for.
func Retried(ctx context.Context) context.Context { return context.WithValue(ctx, retried{}, true) }

// isRetried reports whether the caller repeats a request by itself: each write, and a read with the context of Retried. A review is no
// write: its caller needs the answer at once, or asks many questions of which one failure ends all.
func isRetried(r *http.Request) bool {
	return r.Method != http.MethodGet && !isReview(r) || r.Context().Value(retried{}) != nil
}

// isReview reports whether a request asks about a token or a permission.
func isReview(r *http.Request) bool {
	about, _ := collection(r.URL.Path)
	_, group, _ := strings.Cut(about.Resource, ".")
	return group == "authentication.k8s.io" || group == "authorization.k8s.io"
}
