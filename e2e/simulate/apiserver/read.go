package apiserver

import (
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveGet answers a GET of one object, or of its status, which is the same.
func (s *Server) serveGet(q *request) answer {
	version, err := s.readVersion(q)
	if err != nil {
		return q.failed(err)
	}
	s.countBehind(q, version)
	found := s.store.get(q.kind, q.at, version)
	if found == nil {
		return q.failed(apierrors.NewNotFound(q.kind.gr, q.at.name))
	}
	return q.ok(http.StatusOK, found)
}

// serveList answers a list. All of it comes at once, whatever limit was asked for, as kube-apiserver does out of its watch
// cache for resourceVersion 0.
func (s *Server) serveList(q *request) answer {
	if _, err := q.listOptions(); err != nil {
		return q.failed(err)
	}
	version, err := s.readVersion(q)
	if err != nil {
		return q.failed(err)
	}
	sel, err := q.selection()
	if err != nil {
		return q.failed(err)
	}
	s.countBehind(q, version)
	items, at := s.store.list(q.kind, sel, version)
	a := answer{status: http.StatusOK, body: list(q.kind, items, s.store.textOf(at), q.media), media: q.media}
	if q.fate.Short > 0 {
		a.cut = shortened(a.body, items, q.fate.Short, q.media)
	}
	return a
}

func (q *request) selection() (selection, error) {
	return selectionOf(q.kind, q.at.namespace, q.query.Get("labelSelector"), q.query.Get("fieldSelector"))
}

// readVersion returns the version that a get or list is to be served as of; 0 means now.
func (s *Server) readVersion(q *request) (int64, error) {
	text := q.query.Get("resourceVersion")
	wanted, err := parseVersion(text)
	if err != nil {
		return 0, err
	}
	shown, current := wanted, s.store.now()
	wanted = s.store.known(wanted)
	switch {
	case wanted > current:
		return 0, errTooLarge(shown, s.store.shown(current))
	case q.query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact):
		if oldest := s.store.oldest(); wanted < oldest {
			return 0, errExpired(shown, s.store.shown(oldest))
		}
		return wanted, nil
	case text == "" || q.fate.Lag <= 0:
		return 0, nil
	default:
		return max(current-q.fate.Lag, wanted, s.store.first()), nil
	}
}

// countBehind counts a read as of a version if a server that does not lag would answer it out of a newer state.
func (s *Server) countBehind(q *request, version int64) {
	if q.fate.Lag > 0 && version > 0 && s.store.newer(q.kind, version) {
		s.behind.Add(1)
	}
}

// listOptions reads those options of a list or watch that depend on each other, with their defaults.
func (q *request) listOptions() (internalversion.ListOptions, error) {
	options := internalversion.ListOptions{
		Watch: q.call.Verb == "watch", ResourceVersion: q.query.Get("resourceVersion"), Continue: q.query.Get("continue"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(q.query.Get("resourceVersionMatch")),
	}
	if initial, err := strconv.ParseBool(q.query.Get("sendInitialEvents")); err == nil {
		options.SendInitialEvents = &initial
	}
	streaming := !q.server.options.NoStreamingLists
	internalversion.SetListOptionsDefaults(&options, streaming)
	errs := internalvalidation.ValidateListOptions(&options, streaming)
	if len(errs) > 0 {
		return options, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", errs)
	}
	return options, nil
}
