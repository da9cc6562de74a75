package act

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestKustomizeRenamesReferenceAndListInOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRecorder(t)
		release := func(content string, more ...string) error {
			return f.do(KustomizeRelease, cart, append([]string{"generates", "app", "content", content, "pause", "2s"}, more...)...)
		}
		require.NoError(t, release("1"))
		puts := 0
		for _, r := range f.requests {
			if r.Method == http.MethodPut {
				puts++
				assert.Contains(t, string(r.Body), `"configMapRef":{"name":"app-h1"}`)
				assert.Contains(t, string(r.Body), Prefix+`configmaps":"app-h1, extra"`)
			}
		}
		assert.Equal(t, 1, puts)
		assert.NotNil(t, f.get("configmaps/shop/app"), "others use it")
		assert.Equal(t, "content 1", f.get("configmaps/shop/app-h1")["data"].(world.Object)["generated"])

		require.NoError(t, release("2", "version", "3"))
		assert.Nil(t, f.get("configmaps/shop/app-h1"))
		assert.Contains(t, string(f.encode(f.get(cart))), "example.com/cart:3")
		require.NoError(t, release("3", "prunes", "false"))
		assert.NotNil(t, f.get("configmaps/shop/app-h2"))
		assert.ErrorIs(t, release("3"), ErrSkipped, "it has that one")
	})
}
