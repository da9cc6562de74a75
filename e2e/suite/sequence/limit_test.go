package sequence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
)

// kubectl annotate sends our annotations back with its own. They must not take bytes that the write, or the ReplicaSet, would
// have without them.
func TestWriteThatWouldFitWithoutOurAnnotations(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	user, heard := s.Warned()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	w := s.Deployment("web", fixture.Uses{ConfigMaps: []string{"app"}, Unread: true})
	rolledOut(s, w, 1)
	s.SetConfigMap("app", "key", "2")
	s.AwaitChanges(w, 1, "so that there are a Record and an explanation")
	rolledOut(s, w, 2) // the Deployment controller has written its annotation, which counts

	const limit = 256 << 10
	user.MergeWorkload(w, `{"metadata":{"annotations":{"filler":"`+strings.Repeat("x", limit-size(s.Get(w))-len("filler"))+`"}}}`)
	user.MergeWorkload(w, `{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
	s.AwaitWorkload(w, "the ReplicaSet takes all annotations and those of the Deployment controller", func(o *unstructured.Unstructured) bool {
		return o.GetAnnotations()["deployment.kubernetes.io/revision"] == "3"
	})
	heard.Take()
	// None of our annotations fits into what is left, so the loop restores none, either.
	user.MergeWorkload(w, `{"metadata":{"annotations":{"filler":"`+strings.Repeat("x", limit-200)+`"}}}`)
	stored := s.Get(w)
	assert.LessOrEqual(t, size(stored), limit)
	assert.NotContains(t, stored.GetAnnotations(), fixture.ConfigRecord)
	assert.Contains(t, strings.Join(heard.Take(), " "), "too large to record")
	s.AwaitExactly(2, "an annotation is no release", w)
	s.SetConfigMap("app", "key", "3")
	s.AwaitExactly(3, "the hash alone still shows that something has changed", w)
}

// size is what the API server limits: the keys and values of all annotations.
func size(object *unstructured.Unstructured) int {
	total := 0
	for key, value := range object.GetAnnotations() {
		total += len(key) + len(value)
	}
	return total
}
