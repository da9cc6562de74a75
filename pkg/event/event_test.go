package event_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-reloader/pod-reloader/pkg/event"
)

func TestEvent(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u1"}
	cause := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "app"}
	got := event.Message{
		Type: "Normal", Reason: "Reloaded", Action: "Reload", Note: strings.Repeat("x", 2000), Regarding: about, Related: cause,
		Time: at, Instance: strings.Repeat("y", 200),
	}.Event("web.1")
	assert.Equal(t, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.1"}, EventTime: metav1.NewMicroTime(at),
		ReportingController: "pod-reloader", ReportingInstance: strings.Repeat("y", 128),
		Type: "Normal", Reason: "Reloaded", Action: "Reload", Note: strings.Repeat("x", 1000) + "…", Regarding: about, Related: cause,
	}, got)
}

func TestNamesAreMadeOfTheWords(t *testing.T) {
	t.Parallel()
	assert.Regexp(t, `^web\.[0-9a-f]{16}$`, event.Name("web", "u1", "2"))
	assert.Equal(t, "web.c51ba7b4a99751e9", event.Name("web", "u1", "2"), "the same in every version of the program")
	assert.NotEqual(t, event.Name("web", "u1", "2"), event.Name("web", "u12"))
	assert.NotEqual(t, event.Name("web", "u1", "2"), event.Name("web", "u", "12"))
	longest := strings.Repeat("x", 235) + "." + strings.Repeat("y", 17)
	name := event.Name(longest, "u1")
	assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
	assert.Equal(t, strings.Repeat("x", 235), name[:235])
	assert.NotContains(t, name, "..")
}

func TestActionsOfDifferentTextsDiffer(t *testing.T) {
	t.Parallel()
	one, both := event.Action("Reload", "secret/one deleted"), event.Action("Reload", "secret/one deleted, secret/two deleted")
	assert.NotEqual(t, one, both, "what is new must not be counted on what was said before")
	assert.Equal(t, one, event.Action("Reload", "secret/one deleted"), "what is the same is counted")
	assert.Regexp(t, `^Reload-[0-9a-f]{8}$`, one)
}

func TestNotesFitTheAPI(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "short", event.Note("short"))
	whole := strings.Repeat("é", 500)
	assert.Equal(t, whole, event.Note(whole), "1000 bytes fit")
	cut := event.Note("x" + strings.Repeat("é", 600))
	assert.LessOrEqual(t, len(cut), 1024, "the API server refuses a longer one")
	assert.True(t, utf8.ValidString(cut), "it is cut between characters: %q", cut)
	assert.True(t, strings.HasSuffix(cut, "é…"), "it shows that there was more: %q", cut)
}

func TestLastEventOfEachObjectCounts(t *testing.T) {
	t.Parallel()
	at := func(minutes int) metav1.MicroTime {
		return metav1.NewMicroTime(time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC))
	}
	of := func(name, reason string, first int, counted ...int) eventsv1.Event {
		e := eventsv1.Event{Regarding: corev1.ObjectReference{Name: name}, Reason: reason, EventTime: at(first)}
		for _, minutes := range counted {
			e.Series = &eventsv1.EventSeries{LastObservedTime: at(minutes)}
		}
		return e
	}
	last := event.Last([]eventsv1.Event{
		of("a", "Failing", 1, 4), of("a", "Recovered", 3), of("a", "Other", 5), of("b", "Failing", 1), of("b", "Recovered", 2),
	}, "Failing", "Recovered")
	assert.Len(t, last, 2)
	assert.Equal(t, "Failing", last["a"].Reason, "the last time that it was counted is that of the Event")
	assert.Equal(t, at(4).Time, event.TimeOf(last["a"]))
	assert.Equal(t, "Recovered", last["b"].Reason)
}
