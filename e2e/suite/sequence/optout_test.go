package sequence_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/kit/fixture"
	"github.com/pod-reloader/pod-reloader/e2e/kit/observe"
)

// Opting out by a PUT without any key of ours, and in again.
func TestOptOutByPutAndInAgain(t *testing.T) {
	t.Parallel()
	steadily(t, optOutByPutAndInAgain)
}

func optOutByPutAndInAgain(s *fixture.Fixture) error {
	s.Helper()
	s.ConfigMap("app", fixture.Data{"key": "1"})
	in := fixture.Uses{ConfigMaps: []string{"app"}, Replicas: 1}
	w := s.Deployment("web", in)
	out := s.Manifest("Deployment", "web", in)
	out.SetAnnotations(nil)

	require.NoError(s, s.Update(s.Context(), out))
	s.SetConfigMap("app", "key", "2")
	s.Settled()
	if err := changed(s, w, 0, "opting out restarts nothing, and then it is not reloaded"); err != nil {
		return err
	}
	require.NoError(s, s.Update(s.Context(), s.Manifest("Deployment", "web", in)))
	s.Settled()
	if err := changed(s, w, 1, "the list is new, and the content is not the one that the pods have"); err != nil {
		return err
	}
	out.SetResourceVersion("")
	require.NoError(s, s.Update(s.Context(), out))
	require.NoError(s, s.Update(s.Context(), s.Manifest("Deployment", "web", in)))
	s.Settled()
	return changed(s, w, 1, "out and in again with the same content")
}

// A stamp never makes an object invalid.
func TestNearlyFullAnnotationsStayValid(t *testing.T) {
	t.Parallel()
	s := fixture.New(t, shared)
	var names []string
	for _, letter := range strings.Split("abcdefghij", "") {
		name := strings.Repeat(letter, 200)
		names = append(names, name)
		s.ConfigMap(name, fixture.Data{"key": "1"})
	}
	full := s.Manifest("Deployment", "full", fixture.Uses{ConfigMaps: names, Unread: true})
	annotations := full.GetAnnotations()
	// The Deployment controller may need 2,560 of the 256 KiB. The Record with ten names of 200 characters would not fit into 1,700 bytes
	// more; its compact form does, and so does the annotation of a reload.
	const left = 2560 + 1700
	annotations["filler"] = strings.Repeat("x", 256<<10-left-size(full)-len("filler"))
	full.SetAnnotations(annotations)
	template := map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{"app": "full"},
		"annotations": map[string]any{"filler": strings.Repeat("x", 255<<10)},
	}}
	spec := full.Object["spec"].(map[string]any)
	template["spec"] = spec["template"].(map[string]any)["spec"]
	spec["template"] = template
	s.CreatePromptly(full) // almost 255 KiB of annotations are the user's right

	w := observe.Deployment(s.Namespace, "full")
	assert.Contains(t, s.Get(w).GetAnnotations()[fixture.ConfigRecord], ":*", "the Record takes the form that fits")
	s.SetConfigMap(names[3], "key", "2")
	s.AwaitExactly(1, "the change is seen, though its cause has no name", w)
}
