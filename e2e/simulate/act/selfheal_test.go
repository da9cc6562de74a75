package act

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestControllerAnswersEachChange(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"apply": healByApply, "put": healByPut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRecorder(t)
				healed := make(chan error, 1)
				go func() { healed <- f.do(SelfHeal, cart, "version", "1", "how", how, "for", "30s", "every", "200ms") }()
				<-time.After(5 * time.Second)
				require.NoError(t, f.do("release", cart, "version", "2"))
				require.NoError(t, f.do("edit-managed-annotation", cart, "annotation", "config-hash", "value", "x"))
				<-time.After(10 * time.Second)
				assert.Contains(t, string(f.encode(f.get(cart))), "example.com/cart:1")
				_, there := world.Annotations(f.get(cart))[Prefix+"config-hash"]
				assert.Equal(t, how == healByApply, there, "apply keeps what the manifest does not own")
				require.NoError(t, <-healed)
				writes := 0
				for _, r := range f.requests {
					if r.Method != http.MethodGet {
						writes++
					}
				}
				assert.Less(t, writes, 10, "it writes only after a change")
			})
		})
	}
}
