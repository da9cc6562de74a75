package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServiceAccountOfCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]account{"": {}, "a/b": {"a", "b"}} {
		var a account
		require.NoError(t, a.parse(text), text)
		assert.Equal(t, want, a, text)
	}
	for _, text := range []string{"a", "/b", "a/", "a/b/c", "/"} {
		var a account
		require.ErrorContains(t, a.parse(text), "want NAMESPACE/NAME", text)
	}
}
