package apiserver

import (
	"net/http"
	"strings"
)

// route is what a path names.
type route struct {
	// kind is nil for everything that is no resource of the store.
	kind *kind
	at   name
	// subresource is status or empty.
	subresource string
}

// route reads a path of a resource. The second result is false if the path names none.
func (s *Server) route(path string) (route, bool) {
	group, version, rest, ok := splitGroup(path)
	if !ok {
		return route{}, false
	}
	parts := strings.Split(rest, "/")
	var r route
	// The status of a Namespace has the form of a resource in it.
	if len(parts) > 2 && parts[0] == "namespaces" && (parts[2] != "status" || group != "") {
		r.at.namespace = parts[1]
		parts = parts[2:]
	}
	r.kind = s.served[served{group, version, parts[0]}]
	if len(parts) > 1 {
		r.at.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	return r, r.kind != nil && len(parts) <= 3 && (len(parts) == 1 || r.at.name != "") && r.exists()
}

// splitGroup returns the group and version that a path begins with.
func splitGroup(path string) (group, version, rest string, ok bool) {
	if after, ok := strings.CutPrefix(path, "/api/"); ok {
		version, rest, _ = strings.Cut(after, "/")
		return "", version, rest, true
	}
	if after, ok := strings.CutPrefix(path, "/apis/"); ok {
		group, rest, _ = strings.Cut(after, "/")
		version, rest, _ = strings.Cut(rest, "/")
		return group, version, rest, true
	}
	return "", "", "", false
}

// exists reports whether the kind is served at such a place.
func (r route) exists() bool {
	namespaced := r.at.namespace != ""
	switch {
	case namespaced && !r.kind.Namespaced, r.at.name != "" && namespaced != r.kind.Namespaced:
		return false
	case r.subresource != "":
		return r.subresource == "status" && r.kind.Status
	}
	return true
}

// served names a resource in a path.
type served struct{ group, version, plural string }

// verb returns the verb of a request for a resource; false if it has none.
func (r route) verb(method string, watch bool) (string, bool) {
	named := r.at.name != ""
	switch method {
	case http.MethodGet:
		switch {
		case named: // a watch too: one of a single object takes a field selector
			return "get", true
		case watch:
			return "watch", true
		}
		return "list", true
	case http.MethodPost:
		return "create", !named
	case http.MethodPut:
		return "update", named
	case http.MethodPatch:
		return "patch", named
	case http.MethodDelete:
		return "delete", named && r.subresource == ""
	}
	return "", false
}
