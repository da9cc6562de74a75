package promise_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// releases is how often a configuration and then its workload are changed.
const releases = 30

func TestP3ReleaseOfConfigurationAndWorkloadRollsOutOnce(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	var released []observe.Workload
	tries := 0
	enough(t, releases, func() int {
		name := "app" + strconv.Itoa(tries)
		s.ConfigMap(name, fixture.Data{"key": "1"})
		s.Secret(name, fixture.Data{"key": "1"})
		w := s.Workload(fixture.Kinds[tries%len(fixture.Kinds)], name, fixture.Uses{ConfigMaps: []string{name}, Secrets: []string{name}})
		tries++
		stamped := true
		inTime := within(settle, func() {
			s.SetConfigMap(name, "key", "2")
			s.SetSecret(name, "key", "2")
			stamped = fixture.Promptly(func() { setImage(s, w, "example.com/app:2") })
		})
		if !inTime || !stamped {
			return 0 // the configuration may have settled before the workload changed, or the webhook may have given up reading it
		}
		released = append(released, w)
		return 1
	})
	s.Settled()
	assertOneRollout(s, released)
}

// assertOneRollout checks that the release of each of some workloads was one rollout, with the new image and the new configuration.
func assertOneRollout(s *fixture.Fixture, released []observe.Workload) {
	s.Helper()
	for _, w := range released {
		s.AssertChanges(w, 1, "a release is one rollout")
		for _, change := range s.Watcher.Changes(w)[:1] {
			assert.Equal(s, "example.com/app:2", change.ImageAfter, w)
			assert.NotEqual(s, change.AnnotationsBefore[fixture.ConfigHash], change.AnnotationsAfter[fixture.ConfigHash],
				"%s: the stamp of the new image is that of the new configuration", w)
		}
	}
}

// The webhook reads what is there now: the stamp of a write is never older than the write, however short the time since
// the configuration changed.
func TestP3StampIsNeverOlderThanItsRequest(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	s.ConfigMap("app", fixture.Data{"key": "0"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}})
	hashes := map[string]int{fixture.TemplateAnnotations(s.Get(w))[fixture.ConfigHash]: 0}
	expected := 0
	enoughAtATime(t, releases, func(first, times int) bool {
		prompt := releaseOneAfterTheOther(s, w, hashes, first+1, times)
		s.Settled()
		before := expected
		expected = len(s.Watcher.Changes(w))
		if prompt { // otherwise the configuration may have settled between its own change and the workload's
			s.AssertChanges(w, before+times, "each release is one rollout and none follows")
		}
		return prompt
	})
}

// releaseOneAfterTheOther changes the configuration and the workload some times, in releases numbered from first, and reports whether
// the loop had no time to look in between, and the webhook had the time to read. The stamps are gathered in hashes.
func releaseOneAfterTheOther(s *fixture.Fixture, w observe.Workload, hashes map[string]int, first, times int) bool {
	s.Helper()
	each := true
	return within(settleMax, func() {
		for release := first; release < first+times; release++ {
			stamped := true
			inTime := within(settle, func() {
				s.SetConfigMap("app", "key", strconv.Itoa(release))
				var hash string
				stamped = fixture.Promptly(func() { hash = setImage(s, w, fmt.Sprintf("example.com/app:release-%d", release)) })
				require.NotEmpty(s, hash)
				if stamped {
					require.NotContains(s, hashes, hash, "release %d has the stamp of an earlier configuration", release)
				}
				hashes[hash] = release
			})
			each = each && inTime && stamped
		}
	}) && each
}

// setImage changes the image in a pod template and returns the stamp that it got.
func setImage(s *fixture.Fixture, of observe.Workload, image string) string {
	s.Helper()
	object := fixture.Object(of)
	require.NoError(s, s.Patch(s.Context(), object, fixture.Image(of, image)))
	return fixture.TemplateAnnotations(object)[fixture.ConfigHash]
}
