package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// serveGet answers a GET of one object, or of its status, which is the same.
func (s *Server) serveGet(q *request) answer {
	version, err := s.readVersion(q)
	if err != nil {
		return q.failed(err)
	}
	found := s.store.get(q.kind, q.at, version)
	if found == nil {
		return q.failed(apierrors.NewNotFound(q.kind.gr, q.at.name))
	}
	return q.ok(http.StatusOK, found)
}

// serveList answers a list. All of it comes at once, whatever limit was asked for, as kube-apiserver does out of its watch
// cache for resourceVersion 0.
func (s *Server) serveList(q *request) answer {
	version, err := s.readVersion(q)
	if err != nil {
		return q.failed(err)
	}
	if q.query.Get("sendInitialEvents") != "" {
		return q.failed(invalidOptions("sendInitialEvents", "sendInitialEvents is forbidden for list"))
	}
	sel, err := q.selection()
	if err != nil {
		return q.failed(err)
	}
	items, at := s.store.list(q.kind, sel, version)
	return answer{status: http.StatusOK, body: list(q.kind, items, at, q.media), media: q.media}
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
	current := s.store.now()
	switch {
	case wanted > current:
		return 0, errTooLarge(wanted, current)
	case q.query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact):
		if oldest := s.store.oldest(); wanted < oldest {
			return 0, errExpired(wanted, oldest)
		}
		return wanted, nil
	case text == "" || q.fate.Lag <= 0:
		return 0, nil
	default:
		return max(current-q.fate.Lag, wanted, 1), nil
	}
}

// invalidOptions is the answer to list options that contradict each other or are not supported.
func invalidOptions(option, reason string) error {
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "",
		field.ErrorList{field.Forbidden(field.NewPath(option), reason)})
}
