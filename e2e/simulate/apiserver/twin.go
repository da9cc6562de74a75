package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// newEvent converts an Event of the core group to one of events.k8s.io; the fields are those of the API's own conversion.
func newEvent(o object) object {
	in := clone(o.(*corev1.Event))
	out := &eventsv1.Event{
		ObjectMeta: in.ObjectMeta, EventTime: in.EventTime, Action: in.Action, Reason: in.Reason, Type: in.Type,
		ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
		Regarding: in.InvolvedObject, Related: in.Related, Note: in.Message,
		DeprecatedSource: in.Source, DeprecatedFirstTimestamp: in.FirstTimestamp,
		DeprecatedLastTimestamp: in.LastTimestamp, DeprecatedCount: in.Count,
	}
	if s := in.Series; s != nil {
		out.Series = &eventsv1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	out.APIVersion, out.Kind = world.Events.APIVersion(), world.Events.Kind
	return out
}

// oldEvent converts an Event of events.k8s.io to one of the core group.
func oldEvent(o object) object {
	in := clone(o.(*eventsv1.Event))
	out := &corev1.Event{
		ObjectMeta: in.ObjectMeta, EventTime: in.EventTime, Action: in.Action, Reason: in.Reason, Type: in.Type,
		ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
		InvolvedObject: in.Regarding, Related: in.Related, Message: in.Note,
		Source: in.DeprecatedSource, FirstTimestamp: in.DeprecatedFirstTimestamp,
		LastTimestamp: in.DeprecatedLastTimestamp, Count: in.DeprecatedCount,
	}
	if s := in.Series; s != nil {
		out.Series = &corev1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	out.APIVersion, out.Kind = world.CoreEvents.APIVersion(), world.CoreEvents.Kind
	return out
}
