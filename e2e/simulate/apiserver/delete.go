package apiserver

import (
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// delete answers a DELETE. Pods go at once, as if no kubelet held them and whatever the propagation policy. Of other objects that leaves a
// finalizer, and the rest to the model of the garbage collector.
func (s *Server) delete(q *request) (answer, error) {
	for {
		old := s.store.get(q.kind, q.at, 0)
		if old == nil {
			return answer{}, apierrors.NewNotFound(q.kind.gr, q.at.name)
		}
		if err := checkPreconditions(q.kind, old, q.deletion.Preconditions); err != nil {
			return answer{}, err
		}
		r := review{operation: admissionv1.Delete, old: old}
		if _, err := s.mutate(q, r); err != nil {
			return answer{}, err
		}
		if err := s.validate(q, r); err != nil {
			return answer{}, err
		}
		if a, done := s.end(q, old); done {
			return a, nil
		}
		if err := q.ended(); err != nil {
			return answer{}, err
		}
	}
}

// end removes an object, or marks it where finalizers hold it; false means that it has changed meanwhile.
func (s *Server) end(q *request, old *item) (answer, bool) {
	next := clone(old.typed)
	metaOf(next).Finalizers = q.finalizers(old)
	if released(next) {
		if !q.call.DryRun && s.store.commit(write{kind: q.kind, at: q.at, expect: old, call: q.call}) == nil {
			return answer{}, false
		}
		if q.kind.Plural == "pods" {
			return q.ok(http.StatusOK, old), true
		}
		return q.succeeded(&metav1.Status{
			Status:  metav1.StatusSuccess,
			Details: &metav1.StatusDetails{Name: q.at.name, Group: q.kind.Group, Kind: q.kind.Plural, UID: old.meta().UID},
		}), true
	}
	if old.meta().DeletionTimestamp != nil && slices.Equal(metaOf(next).Finalizers, old.meta().Finalizers) {
		return q.ok(http.StatusOK, old), true
	}
	mark(next)
	if q.call.DryRun {
		return q.ok(http.StatusOK, newItem(q.kind, next, old)), true
	}
	stored := s.store.commit(write{kind: q.kind, at: q.at, expect: old, next: newItem(q.kind, next, old), call: q.call})
	if stored == nil {
		return answer{}, false
	}
	return q.ok(http.StatusOK, stored), true
}

// finalizers returns those that an object has when it is deleted: the policy decides which of the garbage collector is among them
// (deletionFinalizersForGarbageCollection).
func (q *request) finalizers(old *item) []string {
	before := old.meta().Finalizers
	if q.kind.Plural == "pods" {
		return before
	}
	wanted := q.collectorFinalizer(before)
	if wanted != "" && slices.Contains(before, wanted) {
		return before
	}
	after := slices.DeleteFunc(slices.Clone(before), func(name string) bool {
		return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
	})
	if wanted != "" {
		after = append(after, wanted)
	}
	return after
}

// collectorFinalizer returns the finalizer by which an object with some finalizers waits for the garbage collector; empty for none.
func (q *request) collectorFinalizer(before []string) string {
	if policy := q.deletion.PropagationPolicy; policy != nil {
		switch *policy {
		case metav1.DeletePropagationOrphan:
			return metav1.FinalizerOrphanDependents
		case metav1.DeletePropagationForeground:
			return metav1.FinalizerDeleteDependents
		case metav1.DeletePropagationBackground:
		}
		return ""
	}
	for _, name := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
		if slices.Contains(before, name) {
			return name
		}
	}
	if q.kind.Plural == "jobs" { // as in the first version of the API (jobStrategy, DefaultGarbageCollectionPolicy)
		return metav1.FinalizerOrphanDependents
	}
	return ""
}

// mark makes an object one that is being deleted.
func mark(o object) {
	meta := metaOf(o)
	at, grace := now(), int64(0)
	if meta.DeletionGracePeriodSeconds == nil && meta.Generation > 0 {
		meta.Generation++
	}
	if meta.DeletionTimestamp == nil {
		meta.DeletionTimestamp = &at
	}
	meta.DeletionGracePeriodSeconds = &grace
	if n, ok := o.(*corev1.Namespace); ok {
		n.Status.Phase, meta.DeletionGracePeriodSeconds = corev1.NamespaceTerminating, nil
	}
}

// readDeletion reads the options, which a client may send in the body. Without one, the policy may be in the query.
func (q *request) readDeletion() {
	if q.err != nil {
		return
	}
	if len(q.call.Body) == 0 {
		if policy := metav1.DeletionPropagation(q.query.Get("propagationPolicy")); policy != "" {
			q.deletion.PropagationPolicy = &policy
		}
		return
	}
	if err := q.decodeOptions(&q.deletion); err != nil {
		q.err = apierrors.NewBadRequest(err.Error())
	}
	q.call.DryRun = q.call.DryRun || slices.Contains(q.deletion.DryRun, metav1.DryRunAll)
}

func (q *request) decodeOptions(options *metav1.DeleteOptions) error {
	switch q.call.ContentType {
	case protobufType:
		return decodeMessage(q.call.Body, options)
	case yamlType:
		return yaml.Unmarshal(q.call.Body, options)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(q.call.Body, options)
}

func checkPreconditions(k *kind, old *item, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	gr := k.gr
	gr.Resource = k.Kind
	meta := old.meta()
	if p.UID != nil && *p.UID != meta.UID {
		return apierrors.NewConflict(gr, meta.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *p.UID, meta.UID))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != meta.ResourceVersion {
		return apierrors.NewConflict(gr, meta.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the "+
			"ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, meta.ResourceVersion))
	}
	return nil
}
