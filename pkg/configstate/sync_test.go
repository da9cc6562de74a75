package configstate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/podstatus"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// A watch that hangs while it is opened is no refusal, but it must not hold up the rest for ever.
func TestWatchThatFailsForLongDoesNotHoldUpTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failing, other := &watcher{kind: reference.Secret}, &watcher{kind: reference.ConfigMap}
		p := newSyncProgress(watches{{kind: reference.Secret}: failing, {kind: reference.ConfigMap}: other})
		p.list(other)
		p.attempted(failing, false)
		<-time.After(59 * time.Second)
		p.attempted(failing, false)
		assert.False(t, p.synced(), "an API server that restarts is given some time")
		<-time.After(time.Second)
		p.attempted(failing, false)
		assert.True(t, p.synced(), "the failing watch has had a minute")
	})
}

// What looks at everything once the Store is synced passes over the initial events: it must not begin between two of them.
func TestSyncWaitsForTheInitialEvents(t *testing.T) {
	t.Parallel()
	object := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		// last is the event during which the other watch lists its objects.
		last    EventType
		deliver func(s *Store, w *watcher)
	}{
		"of the listing": {Added, func(s *Store, w *watcher) {
			s.metadata.replace(w, []*metav1.PartialObjectMetadata{object("a", "1")})
		}},
		"of a change behind the listing": {Modified, func(s *Store, w *watcher) {
			s.metadata.replace(w, []*metav1.PartialObjectMetadata{object("a", "1")})
			s.metadata.put(w, object("a", "2"), origin{})
		}},
		"of a deletion behind the listing": {Deleted, func(s *Store, w *watcher) {
			s.metadata.replace(w, []*metav1.PartialObjectMetadata{object("a", "1")})
			s.metadata.remove(w, object("a", "2"), origin{})
		}},
		"of the content of a class": {Modified, func(s *Store, w *watcher) {
			s.metadata.replace(w, nil)
			statuses := s.watches[scopeKey{kind: podStatusKind}]
			s.statuses.list(statuses, newPodStatuses())
			s.statuses.put(statuses, "shop", podstatus.Status{Name: "p", UID: "u", ResourceVersion: "1", Class: "a", Objects: map[string]string{"id": "1"}})
		}},
		"of the listed contents of classes": {Modified, func(s *Store, w *watcher) {
			s.metadata.replace(w, nil)
			listed := newPodStatuses()
			listed.put("shop", podstatus.Status{Name: "p", UID: "u", ResourceVersion: "1", Class: "a", Objects: map[string]string{"id": "1"}})
			s.statuses.list(s.watches[scopeKey{kind: podStatusKind}], listed)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := New(Options{
				Config: &rest.Config{Host: "https://127.0.0.1:1"}, Ring: func() digest.Ring { return digest.Ring{} }, SecretProviderClasses: true,
			})
			require.NoError(t, err)
			reached := false
			s.OnEvent(func(e Event) {
				assert.True(t, e.Initial, "the event is of the first list")
				if e.Type == tc.last && !reached {
					reached = true
					listOthers(s, e)
				}
				assert.False(t, s.Synced(), "an event is still under way")
			})
			tc.deliver(s, s.watches[scopeKey{kind: reference.ConfigMap}])
			require.True(t, reached, "the event %s came", tc.last)
			assert.True(t, s.Synced(), "all events are delivered")
		})
	}
}

// listOthers does what the goroutines of the other watches may do during an event.
func listOthers(s *Store, during Event) {
	for _, w := range s.watches {
		switch {
		case s.progress.listed(w), w.kind == podStatusKind && during.Ref.Kind == reference.SecretProviderClass:
		case w.kind == podStatusKind:
			s.statuses.list(w, newPodStatuses())
		default:
			s.metadata.replace(w, nil)
		}
	}
}
