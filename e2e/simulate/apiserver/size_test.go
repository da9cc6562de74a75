package apiserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestAnnotationsHaveALimit(t *testing.T) {
	t.Parallel()
	s := server(t)
	post(t, s, deployments, cartBody)
	for field, path := range map[string]string{"metadata.annotations": `{"metadata":`, "spec.template.annotations": `{"spec":{"template":{"metadata":`} {
		patch := func(bytes int) answer {
			text := path + `{"annotations":{"note":"1","bulk":"` + strings.Repeat("x", bytes-len("note1bulk")) + `"}}`
			return merge(t, s, cart, text+strings.Repeat("}", strings.Count(path, "{")))
		}
		assert.Equal(t, 200, patch(262144).Code, field)
		over := patch(262145)
		require.Equal(t, 422, over.Code, field)
		assert.Contains(t, over.failure().Message, field+": Too long: may not be more than 262144 bytes")
	}
}

func TestControllersMeetTheLimitToo(t *testing.T) {
	t.Parallel()
	s := server(t)
	key := worldKey("deployments", "cart")
	o := decoded(t, cartBody)
	o["metadata"].(world.Object)["annotations"] = world.Object{"a": strings.Repeat("x", 262143)}
	stored, err := s.Store(key, o)
	require.NoError(t, err)
	more := world.Meta(stored).DeepCopy()
	more.SetAnnotations(map[string]string{"a": strings.Repeat("x", 262144)})
	_, err = s.Store(key, more.Object)
	assert.True(t, apierrors.IsInvalid(err), err)
	_, err = s.StoreStatus(key, more.Object)
	assert.True(t, apierrors.IsInvalid(err), err)
}
