package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listed are the Events that exist.
type listed struct {
	items  []eventsv1.Event
	err    error
	fields string
}

func (l *listed) List(_ context.Context, namespace string, o metav1.ListOptions) (*eventsv1.EventList, error) {
	l.fields = namespace + " " + o.FieldSelector
	return &eventsv1.EventList{Items: l.items}, l.err
}

func TestLastReportOfAnEarlierLeaderCounts(t *testing.T) {
	t.Parallel()
	const failure, end = "WatchFailing", "WatchRecovered"
	said := func(reason string, minutes int, counted ...int) eventsv1.Event {
		at := func(minutes int) metav1.MicroTime {
			return metav1.NewMicroTime(time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC))
		}
		e := eventsv1.Event{Regarding: corev1.ObjectReference{Name: "reloader"}, Reason: reason, EventTime: at(minutes)}
		for _, last := range counted {
			e.Series = &eventsv1.EventSeries{LastObservedTime: at(last)}
		}
		return e
	}
	for name, tc := range map[string]struct {
		events []eventsv1.Event
		err    error
		want   bool
	}{
		"none":                   {},
		"others":                 {events: []eventsv1.Event{said("PermissionsMissing", 3)}},
		"the watches fail":       {events: []eventsv1.Event{said(failure, 2), said("PermissionsGranted", 3)}, want: true},
		"the watches work":       {events: []eventsv1.Event{said(end, 2), said(failure, 1)}},
		"the watches fail again": {events: []eventsv1.Event{said(failure, 1, 3), said(end, 2)}, want: true},
		"no answer":              {err: errors.New("timeout")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &listed{items: tc.events, err: tc.err}
			got, err := lastReport(l, "home", "reloader", failure, end)(t.Context())
			assert.Equal(t, tc.want, got)
			assert.ErrorIs(t, err, tc.err)
			assert.Equal(t, "home regarding.kind=Deployment,regarding.name=reloader,reportingController=pod-reloader", l.fields)
		})
	}
}
