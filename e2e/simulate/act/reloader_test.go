package act

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReloaderReloadsAfterAnEdit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ strategy, want string }{
		"variable":   {"env-vars", `"name":"STAKATER_EXTRA_CONFIGMAP","value":"`},
		"annotation": {"annotations", lastReloadedFrom},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRecorder(t)
				reload := func(value string) error {
					return f.do(ReloaderReloads, cart, "config", "configmaps/shop/extra", "key", "level", "value", value, "after", "2s", "strategy", tc.strategy)
				}
				require.NoError(t, reload("v1"))
				first := string(f.encode(f.get(cart)))
				assert.Contains(t, first, tc.want)
				require.NoError(t, reload("v1"))
				assert.Equal(t, first, string(f.encode(f.get(cart))), "nothing has changed")
				require.NoError(t, reload("v2"))
				assert.NotEqual(t, first, string(f.encode(f.get(cart))))
			})
		})
	}
}

func TestReloaderSum(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "e7e1f7232d18439644535432c1529c5de34c6d3f", reloaderSum(map[string]any{"data": map[string]any{"k": "B"}}), "sha1sum of k=B")
}
