package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The example that was published with the recipe.
func TestRevisionIsThePublishedOne(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "efec662502e54e0608b8416d527adc60299ebc1e67b528d2b835735ddba509cc", revision(seenObject{
		Kind: "configmap", Namespace: "test", Name: "test1", Version: "ConfigMap/test/test1.1",
	}))
}

func TestParseSeen(t *testing.T) {
	t.Parallel()
	objects, err := parseSeen("ConfigMap/shop/a.b/1-2.3\nSecret/shop/c/4-5.6\n")
	require.NoError(t, err)
	assert.Equal(t, []seenObject{
		{Kind: "configmap", Namespace: "shop", Name: "a.b", Version: "1-2.3"},
		{Kind: "secret", Namespace: "shop", Name: "c", Version: "4-5.6"},
	}, objects)
	for name, output := range map[string]string{"too short": "ConfigMap/shop/a", "an empty line": "\n"} {
		_, err := parseSeen(output)
		assert.Error(t, err, name)
	}
}
