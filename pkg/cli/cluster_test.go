package cli

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestNamesOfFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]types.NamespacedName{"": {}, "a/b": {Namespace: "a", Name: "b"}} {
		got, err := parseName("reloader", text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"a", "/b", "a/", "a/b/c", "/"} {
		_, err := parseName("reloader", text)
		require.EqualError(t, err, fmt.Sprintf("--reloader: %q: want NAMESPACE/NAME", text))
	}
}
