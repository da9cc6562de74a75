package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The bounds of kube-apiserver for the texts of Events, in bytes.
const (
	longestNote   = 1024
	longestReason = 128
)

// validateOldEvent is what the core API asks of an Event.
func validateOldEvent(o *corev1.Event) field.ErrorList {
	if o.InvolvedObject.Namespace != "" && o.InvolvedObject.Namespace != o.Namespace {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), o.InvolvedObject.Namespace, "does not match event.namespace")}
	}
	return nil
}

// validateEvent is what events.k8s.io asks of an Event.
func validateEvent(o *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	global := o.Regarding.Namespace == "" && (o.Namespace == metav1.NamespaceDefault || o.Namespace == metav1.NamespaceSystem)
	if o.Regarding.Namespace != o.Namespace && !global {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), o.Regarding.Namespace, "does not match event.namespace"))
	}
	errs = append(errs, validateTexts(o)...)
	if o.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if o.Type != corev1.EventTypeNormal && o.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+o.Type))
	}
	if o.Series != nil && o.Series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	return errs
}

func validateTexts(o *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name, value string
		required    bool
		longest     int
	}{
		{"reportingController", o.ReportingController, true, 0},
		{"reportingInstance", o.ReportingInstance, true, longestReason},
		{"action", o.Action, true, longestReason},
		{"reason", o.Reason, true, longestReason},
		{"message", o.Note, false, longestNote},
	} {
		if f.required && f.value == "" {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		if f.longest > 0 && len(f.value) > f.longest {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", fmt.Sprintf("can have at most %d characters", f.longest)))
		}
	}
	return errs
}
