package referent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// check finds why an object cannot be used; nil if it can. An edit of an object makes its status stale until its
// controller has looked.
func (r readyRule) check(key Key, object *unstructured.Unstructured) *Hold {
	hold := r.reason(key, object)
	if hold != nil && object.GetDeletionTimestamp() != nil {
		hold.Detail += "; it is being deleted"
	}
	return hold
}

func (r readyRule) reason(key Key, object *unstructured.Unstructured) *Hold {
	generation := object.GetGeneration()
	if r.observed != nil {
		observed, ok := integer(r.observed.Field(object.Object))
		if !ok || observed < generation {
			return &Hold{Reason: Stale, Node: key, Detail: behind(r.observed.String(), observed, ok, generation)}
		}
	}
	for _, condition := range r.conditions {
		if hold := condition.check(key, object); hold != nil {
			return hold
		}
	}
	return nil
}

// check wants the condition in every list that the path leads to: in one at least.
func (r conditionRule) check(key Key, object *unstructured.Unstructured) *Hold {
	found := false
	var hold *Hold
	r.lists.Find(object.Object, func(list any) {
		found = true
		if hold == nil {
			hold = r.checkList(key, list, object.GetGeneration())
		}
	})
	if !found {
		return r.notReady(key, "there is no "+r.at)
	}
	return hold
}

func (r conditionRule) checkList(key Key, list any, generation int64) *Hold {
	items, _ := list.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		if fields["type"] != r.kind {
			continue
		}
		if fields["status"] != r.status {
			return r.notReady(key, r.explain(fields))
		}
		// A condition that names a generation says nothing of a later one: see metav1.Condition.
		if observed, ok := integer(fields["observedGeneration"]); ok && observed < generation {
			return &Hold{Reason: Stale, Node: key, Detail: behind("condition "+r.kind, observed, true, generation)}
		}
		return nil
	}
	return r.notReady(key, "there is no condition "+r.kind)
}

func (r conditionRule) notReady(key Key, detail string) *Hold {
	return &Hold{Reason: NotReady, Node: key, Detail: detail}
}

// explain repeats what the object's controller says of its condition, in so far as it is a text.
func (r conditionRule) explain(fields map[string]any) string {
	status, _ := fields["status"].(string)
	text := fmt.Sprintf("condition %s is %s, want %s", r.kind, reference.Quote(status), r.status)
	if reason, _ := fields["reason"].(string); reason != "" {
		text += ": " + reference.Quote(reason)
	}
	return text
}

func behind(what string, observed int64, known bool, generation int64) string {
	if !known {
		return fmt.Sprintf("there is no %s; generation is %d", what, generation)
	}
	return fmt.Sprintf("%s is of generation %d, generation is %d", what, observed, generation)
}

// integer reads a whole number as it was decoded.
func integer(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case float64:
		return int64(value), value == float64(int64(value))
	default:
		return 0, false
	}
}
