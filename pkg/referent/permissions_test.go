package referent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

func TestPermissions(t *testing.T) {
	t.Parallel()
	definitions := []referent.Definition{
		{ID: "a", GVR: gvr("as"), Publish: true},
		{ID: "b", GVR: gvr("bs"), ClusterScoped: true},
	}
	for name, c := range map[string]struct {
		namespaces []string
		want       []string
	}{
		"all namespaces": {nil, []string{"get, list, watch, patch on as.example.io", "get, list, watch on bs.example.io"}},
		"some namespaces": {[]string{"x", "y"}, []string{
			"get, list, watch, patch on as.example.io in namespace x", "get, list, watch, patch on as.example.io in namespace y",
			"get, list, watch on bs.example.io",
		}},
	} {
		var texts []string
		for _, permission := range referent.Permissions(definitions, c.namespaces) {
			texts = append(texts, permission.String())
		}
		assert.Equal(t, c.want, texts, name)
	}
	assert.Empty(t, referent.Permissions(nil, []string{"x"}))
}
