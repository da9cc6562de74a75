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
	var group, version, rest string
	switch {
	case strings.HasPrefix(path, "/api/"):
		version, rest, _ = strings.Cut(path[len("/api/"):], "/")
	case strings.HasPrefix(path, "/apis/"):
		group, rest, _ = strings.Cut(path[len("/apis/"):], "/")
		version, rest, _ = strings.Cut(rest, "/")
	default:
		return route{}, false
	}
	parts := strings.Split(rest, "/")
	var r route
	if len(parts) > 2 && parts[0] == "namespaces" && (parts[2] != "status" || group != "") {
		r.at.namespace = parts[1]
		parts = parts[2:]
	}
	r.kind = s.served[served{group, version, parts[0]}]
	if r.kind == nil || (r.at.namespace != "" && !r.kind.Namespaced) {
		return route{}, false
	}
	if len(parts) > 1 {
		r.at.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	switch {
	case len(parts) > 3, len(parts) > 1 && r.at.name == "", r.subresource != "" && (r.subresource != "status" || !r.kind.Status):
		return route{}, false
	case r.at.name != "" && r.kind.Namespaced && r.at.namespace == "":
		return route{}, false
	}
	return r, true
}

// served names a resource in a path.
type served struct{ group, version, plural string }

// verb returns the verb of a request for a resource; false if it has none.
func (r route) verb(method string, watch bool) (string, bool) {
	named := r.at.name != ""
	switch method {
	case http.MethodGet:
		switch {
		case watch:
			return "watch", r.subresource == ""
		case named:
			return "get", true
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
