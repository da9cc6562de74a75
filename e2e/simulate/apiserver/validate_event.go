package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The bounds of kube-apiserver for the texts of Events, in bytes.
const (
	longestNote   = 1024
	longestReason = 128
)

// validateEvent is what only events.k8s.io asks of an Event.
func validateEvent(o *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	if s := o.Series; s != nil && s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if o.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if o.Type != corev1.EventTypeNormal && o.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+o.Type))
	}
	return errs
}

// validateTexts is what both APIs ask of an Event. One without an event time is of the older form, which has fewer rules.
func validateTexts(o *eventsv1.Event, controller string) field.ErrorList {
	var errs field.ErrorList
	if about := o.Regarding.Namespace; !fits(o, about) {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace"))
	}
	if o.EventTime.IsZero() {
		return errs
	}
	errs = append(errs, validateController(o.ReportingController, field.NewPath(controller))...)
	for _, f := range []struct {
		name, value string
		required    bool
		longest     int
	}{
		{"reportingInstance", o.ReportingInstance, true, longestReason},
		{"action", o.Action, true, longestReason},
		{"reason", o.Reason, true, longestReason},
		{"message", o.Note, false, longestNote},
	} {
		if f.required && f.value == "" {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		if len(f.value) > f.longest {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", fmt.Sprintf("can have at most %d characters", f.longest)))
		}
	}
	return errs
}

func validateController(controller string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if controller == "" {
		errs = append(errs, field.Required(path, ""))
	}
	for _, text := range validation.IsQualifiedName(controller) {
		errs = append(errs, field.Invalid(path, controller, text))
	}
	return errs
}

// fits reports whether an Event may be about an object in a namespace.
func fits(o *eventsv1.Event, about string) bool {
	if o.EventTime.IsZero() {
		return about == o.Namespace || (about == "" && o.Namespace == metav1.NamespaceDefault)
	}
	return about != "" || o.Namespace == metav1.NamespaceDefault || o.Namespace == metav1.NamespaceSystem
}
