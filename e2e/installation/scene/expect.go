package scene

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/e2e/observe"
)

// AwaitChanges waits until a workload has had n template changes or more.
func (s *Scene) AwaitChanges(of observe.Workload, n int, why string) []observe.Change {
	s.Helper()
	changes, err := s.Watcher.AwaitTemplateChanges(s.Patiently(), of, n)
	require.NoError(s, err, why)
	return changes
}

// Settled is the barrier for "and nothing else": the loop is through with everything so far, and the observer has seen
// every version.
func (s *Scene) Settled() {
	s.Helper()
	require.NoError(s, s.Installation.Quiet(s.Patiently()))
	require.NoError(s, s.Watcher.Sync(s.Patiently()))
}

// RequireChanges tells after [Scene.Settled] how many template changes a workload has had. None may have gone unseen.
func (s *Scene) RequireChanges(of observe.Workload, n int, why string) {
	s.Helper()
	changes := s.Watcher.Changes(of)
	require.Len(s, changes, n, "%s: %s\n%s", of, why, list(changes))
	require.Zero(s, s.Watcher.Unseen(of), "versions of %s that the observer missed", of)
}

// AssertChanges is RequireChanges that lets the test go on.
func (s *Scene) AssertChanges(of observe.Workload, n int, why string) {
	s.Helper()
	changes := s.Watcher.Changes(of)
	assert.Len(s, changes, n, "%s: %s\n%s", of, why, list(changes))
	assert.Zero(s, s.Watcher.Unseen(of), "versions of %s that the observer missed", of)
}

func list(changes []observe.Change) string {
	lines := make([]string, 0, len(changes))
	for _, c := range changes {
		lines = append(lines, "  "+c.String())
	}
	return strings.Join(lines, "\n")
}

// Events are those about a workload, oldest first as far as the API server tells.
func (s *Scene) Events(of observe.Workload) []eventsv1.Event {
	s.Helper()
	all := &eventsv1.EventList{}
	require.NoError(s, s.List(s.Context(), all, client.InNamespace(of.Namespace)))
	var about []eventsv1.Event
	for _, e := range all.Items {
		if e.Regarding.Kind == of.Kind && e.Regarding.Name == of.Name && e.ReportingController != "deployment-controller" {
			about = append(about, e)
		}
	}
	return about
}

// AwaitEvent waits for an Event with a reason whose note contains all the given texts.
func (s *Scene) AwaitEvent(of observe.Workload, reason string, texts ...string) eventsv1.Event {
	s.Helper()
	var found eventsv1.Event
	s.Await(fmt.Sprintf("an Event %s on %s with %q", reason, of, texts), func() error {
		var notes []string
		for _, e := range s.Events(of) {
			notes = append(notes, e.Reason+": "+e.Note)
			if e.Reason == reason && containsAll(e.Note, texts) {
				found = e
				return nil
			}
		}
		return fmt.Errorf("there are %q", notes)
	})
	return found
}

func containsAll(note string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(note, text) {
			return false
		}
	}
	return true
}

// AwaitWorkload waits until a condition on a workload holds and returns that version.
func (s *Scene) AwaitWorkload(of observe.Workload, what string, holds func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	s.Helper()
	var now *unstructured.Unstructured
	s.Await(what+" of "+of.String(), func() error {
		now = &unstructured.Unstructured{}
		now.SetGroupVersionKind(GroupVersionKind(of.Kind))
		if err := s.Client.Get(s.Context(), types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, now); err != nil {
			return err
		}
		if !holds(now) {
			return fmt.Errorf("it has %v, its template %v", now.GetAnnotations(), TemplateAnnotations(now))
		}
		return nil
	})
	return now
}

// AwaitAdopted waits until the Record of a workload has the content of an object, like "secret/tls": from then on a change
// of that one counts.
func (s *Scene) AwaitAdopted(of observe.Workload, ref string) {
	s.Helper()
	item := regexp.MustCompile(`[:,]` + regexp.QuoteMeta(ref) + `[=~][0-9a-f]`)
	s.AwaitWorkload(of, "the adoption of "+ref, func(o *unstructured.Unstructured) bool {
		return item.MatchString(o.GetAnnotations()[ConfigRecord])
	})
}

// AwaitKnown waits until pod-reloader knows what the pods of a workload were started with: from then on it restarts them
// for every change.
func (s *Scene) AwaitKnown(of observe.Workload) {
	s.Helper()
	s.AwaitWorkload(of, "the Record", func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()[ConfigRecord] != ""
	})
}
