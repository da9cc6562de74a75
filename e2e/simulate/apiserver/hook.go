package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// hook is a Webhook with what is compiled of it.
type hook struct {
	Webhook
	namespaces, objects labels.Selector
	conditions          []condition
}

// condition is a compiled match condition.
type condition struct {
	name    string
	program cel.Program
}

func newHook(w Webhook) (*hook, error) {
	h := &hook{Webhook: w}
	if w.Call == nil {
		return nil, errors.New("it has no Call")
	}
	var err error
	if h.namespaces, err = selectorOf(w.Config.NamespaceSelector); err != nil {
		return nil, fmt.Errorf("read the namespace selector: %w", err)
	}
	if h.objects, err = selectorOf(w.Config.ObjectSelector); err != nil {
		return nil, fmt.Errorf("read the object selector: %w", err)
	}
	h.conditions, err = compile(w.Config.MatchConditions)
	return h, err
}

// selectorOf reads a selector; a missing one selects everything, as the API defaults it.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// applies reports whether a webhook is to be called.
func (s *Server) applies(q *request, h *hook, r *review) (bool, error) {
	if !slices.ContainsFunc(h.Config.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return covers(rule, q, r.operation)
	}) {
		return false, nil
	}
	if !h.selectsObject(r) || !s.selectsNamespace(q, h, r) {
		return false, nil
	}
	matches, err := h.match(q, r)
	switch {
	case err == nil:
		return matches, nil
	case h.ignores():
		return false, nil
	default:
		return false, apierrors.NewForbidden(q.kind.gr, r.name(q), err)
	}
}

func covers(rule admissionregistrationv1.RuleWithOperations, q *request, operation admissionv1.Operation) bool {
	has := func(items []string, item string) bool {
		return slices.Contains(items, "*") || slices.Contains(items, item)
	}
	scope := admissionregistrationv1.AllScopes
	if rule.Scope != nil {
		scope = *rule.Scope
	}
	if scope != admissionregistrationv1.AllScopes && (scope == admissionregistrationv1.NamespacedScope) != q.kind.Namespaced {
		return false
	}
	return slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.OperationAll || string(o) == string(operation)
	}) && has(rule.APIGroups, q.kind.Group) && has(rule.APIVersions, q.kind.Version) &&
		slices.ContainsFunc(rule.Resources, func(pattern string) bool {
			resource, sub, _ := strings.Cut(pattern, "/")
			return (resource == "*" || resource == q.kind.Plural) && (sub == "*" || sub == q.subresource)
		})
}

// selectsObject looks at the labels of the object before and after.
func (h *hook) selectsObject(r *review) bool {
	if h.objects.Empty() {
		return true
	}
	return (r.object != nil && h.objects.Matches(labels.Set(metaOf(r.object).Labels))) ||
		(r.old != nil && h.objects.Matches(labels.Set(r.old.meta().Labels)))
}

// selectsNamespace looks at the labels of the object's namespace, and for a Namespace at its own.
func (s *Server) selectsNamespace(q *request, h *hook, r *review) bool {
	if h.namespaces.Empty() {
		return true
	}
	if q.kind.Plural == "namespaces" {
		if r.object != nil {
			return h.namespaces.Matches(labels.Set(metaOf(r.object).Labels))
		}
		return h.namespaces.Matches(labels.Set(r.old.meta().Labels))
	}
	found := s.store.get(s.served[served{"", "v1", "namespaces"}], name{name: q.at.namespace}, 0)
	return found != nil && h.namespaces.Matches(labels.Set(found.meta().Labels))
}
