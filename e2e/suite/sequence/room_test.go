package sequence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// kubectl annotate sends our annotations back with its own. They must not take the room that the write would have without
// them.
func TestWriteThatWouldFitWithoutOurAnnotations(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	user, heard := s.Warned()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Unread: true})
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "so that there are a Record and an explanation")

	const limit = 256 << 10
	merge(user, w, `{"metadata":{"annotations":{"filler":"`+strings.Repeat("x", limit-size(s.Get(w))-len("filler"))+`"}}}`)
	require.Equal(t, limit, size(s.Get(w)), "all of it has room")
	assert.Empty(t, heard.Take())
	// What is left has room for none of our annotations, so that the loop puts none back, either.
	merge(user, w, `{"metadata":{"annotations":{"filler":"`+strings.Repeat("x", limit-200)+`"}}}`)
	stored := s.Get(w)
	assert.LessOrEqual(t, size(stored), limit)
	assert.NotContains(t, stored.GetAnnotations(), fixture.ConfigRecord)
	assert.Contains(t, strings.Join(heard.Take(), " "), "too large to record")
	s.Settled()
	s.RequireChanges(w, 1, "an annotation is no release")
	s.SetConfigMap("app", "key", "3")
	s.AwaitChanges(w, 2, "the hash alone still tells that something has changed")
	s.Settled()
	s.RequireChanges(w, 2, "once")
}

// size is what the API server limits: the keys and values of all annotations.
func size(object *unstructured.Unstructured) int {
	total := 0
	for key, value := range object.GetAnnotations() {
		total += len(key) + len(value)
	}
	return total
}
