package app

import (
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-reloader/pod-reloader/pkg/outbox"
)

// recordedEvents are the Events that a recorder was given, and what it has logged.
type recordedEvents struct {
	*recorder
	clock    time.Time
	messages []outbox.Message
	lines    []string
}

func newRecorder(t *testing.T) *recordedEvents {
	t.Helper()
	r := &recordedEvents{clock: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	r.recorder = &recorder{
		put: func(m outbox.Message) { r.messages = append(r.messages, m) }, scheme: runtime.NewScheme(), instance: "pod-reloader-host-1",
		now: func() time.Time { return r.clock },
		log: funcr.New(func(_, args string) { r.lines = append(r.lines, args) }, funcr.Options{}),
	}
	return r
}

func TestEventsOfTheInstallationAreWrittenByTheOutbox(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	own := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "tools", Name: "pod-reloader", UID: "u"}
	cause := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "tools", Name: "configuration"}
	r.Eventf(own, cause, "Warning", "WatchFailed", "Watch-1", "%s fails", "v1/Secret")
	require.Len(t, r.messages, 1)
	first := r.messages[0]
	assert.Equal(t, "Deployment tools/pod-reloader", first.Subject)
	assert.Equal(t, eventLife, first.Life)
	assert.Equal(t, "tools", first.Event.Namespace)
	assert.Equal(t, "v1/Secret fails", first.Event.Note)
	assert.Equal(t, []string{"Warning", "WatchFailed", "Watch-1"}, []string{first.Event.Type, first.Event.Reason, first.Event.Action})
	assert.Equal(t, *own, first.Event.Regarding)
	assert.Equal(t, cause, first.Event.Related)
	assert.Equal(t, []string{"pod-reloader", "pod-reloader-host-1"}, []string{first.Event.ReportingController, first.Event.ReportingInstance})
	assert.Equal(t, r.clock.UnixNano(), first.Event.EventTime.UnixNano())

	r.clock = r.clock.Add(time.Nanosecond)
	r.Eventf(own, nil, "Warning", "WatchFailed", "Watch-1", "%s fails", "v1/Secret")
	assert.NotEqual(t, first.Event.Name, r.messages[1].Event.Name, "the same again is another Event")
	assert.Nil(t, r.messages[1].Event.Related)
}

func TestEventAboutAnObjectWithoutNamespaceIsInTheDefaultOne(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	class := &unstructured.Unstructured{}
	class.SetAPIVersion("example.com/v1")
	class.SetKind("GatewayClass")
	class.SetName("edge")
	r.Eventf(class, nil, "Warning", "PublishFailed", "Publish", "refused")
	require.Len(t, r.messages, 1)
	assert.Equal(t, "default", r.messages[0].Event.Namespace)
	assert.Equal(t, corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "GatewayClass", Name: "edge"}, r.messages[0].Event.Regarding)
}

func TestEventAboutNothingIsLogged(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.Eventf(nil, nil, "Warning", "WatchFailed", "Watch", "fails")
	assert.Empty(t, r.messages)
	require.Len(t, r.lines, 1)
	assert.Contains(t, r.lines[0], `"event"="WatchFailed"`)
}
