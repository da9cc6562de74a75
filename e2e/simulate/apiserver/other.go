package apiserver

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveOther answers requests that are about no resource of the store: discovery, the version, probes and access reviews.
func (s *Server) serveOther(q *request) answer {
	path := strings.TrimSuffix(q.http.URL.Path, "/")
	if q.http.Method == http.MethodPost && path == accessReviewPath {
		a, err := s.reviewAccess(q)
		if err != nil {
			return q.failed(err)
		}
		return a
	}
	switch q.http.Method + " " + path {
	case "GET /version":
		return q.text(Version)
	case "GET /healthz", "GET /livez", "GET /readyz":
		return answer{status: http.StatusOK, body: []byte("ok"), plain: true}
	case "GET /api":
		return q.text(metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "apiserver:443"}},
		})
	case "GET /apis":
		return q.text(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.groups()})
	}
	if q.http.Method != http.MethodGet {
		return s.unknown(q, path)
	}
	if resources := s.resources(path); len(resources) > 0 {
		_, groupVersion, _ := strings.Cut(path[1:], "/")
		return q.text(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion, APIResources: resources,
		})
	}
	for _, g := range s.groups() {
		if path == "/apis/"+g.Name {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return q.text(g)
		}
	}
	return s.unknown(q, path)
}

// unknown answers where nothing is served: with a Status within a group that is, else like any web server.
func (s *Server) unknown(q *request, path string) answer {
	for _, k := range s.kinds {
		if strings.HasPrefix(path, "/api/v1/") || s.isServed(k) && strings.HasPrefix(path, "/apis/"+k.APIVersion()+"/") {
			return q.failed(errUnknownPath())
		}
	}
	return notServed()
}

// notServed is the answer of a web server, also to requests for a custom resource that is not defined.
func notServed() answer {
	return answer{status: http.StatusNotFound, body: []byte("404 page not found\n"), plain: true, failure: statusOf(errUnknownPath())}
}

// text answers in JSON, whatever form was asked for: clients that prefer another one understand it too.
func (q *request) text(v any) answer {
	return answer{status: http.StatusOK, body: append(toJSON(v), '\n')}
}

// groups returns the API groups but the core group.
func (s *Server) groups() []metav1.APIGroup {
	var groups []metav1.APIGroup
	seen := map[string]bool{"": true}
	add := func(group, version string) {
		if seen[group] {
			return
		}
		seen[group] = true
		v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
		groups = append(groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	for _, k := range s.discovered() {
		add(k.Group, k.Version)
	}
	add(authorizationGroup, "v1")
	return groups
}

// resources returns what a path such as /apis/apps/v1 serves.
func (s *Server) resources(path string) []metav1.APIResource {
	var all []metav1.APIResource
	for _, k := range s.discovered() {
		root := "/apis/"
		if k.Group == "" {
			root = "/api/"
		}
		if path != root+k.APIVersion() {
			continue
		}
		r := metav1.APIResource{
			Name: k.Plural, SingularName: strings.ToLower(k.Kind), Namespaced: k.Namespaced, Kind: k.Kind,
			Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
		}
		all = append(all, r)
		if k.Status {
			r.Name, r.SingularName, r.Verbs = k.Plural+"/status", "", metav1.Verbs{"get", "patch", "update"}
			all = append(all, r)
		}
	}
	if path == "/apis/"+authorizationGroup+"/v1" {
		all = append(all, metav1.APIResource{Name: accessReviews, Kind: accessReview, Verbs: metav1.Verbs{"create"}})
	}
	return all
}
