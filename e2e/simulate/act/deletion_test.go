package act

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

func TestWorkloadIsDeletedWithAPolicyAndCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do     string
		with   []string
		policy string
		image  string
	}{
		"foreground":                    {DeleteForeground, nil, `"Foreground"`, ""},
		"foreground, held":              {DeleteForeground, []string{"held", "8s", "version", "3", "pause", "2s"}, `"Foreground"`, "example.com/cart:3"},
		"foreground, applied meanwhile": {DeleteForeground, []string{"meanwhile", "apply", "version", "3", "pause", "0s"}, `"Foreground"`, "example.com/cart:3"},
		"orphan":                        {DeleteOrphan, []string{"from", "nothing", "pause", "0s"}, `"Orphan"`, ""},
		"orphan, from its export":       {DeleteOrphan, []string{"pause", "2s"}, `"Orphan"`, "example.com/cart:1"},
		"orphan, from a manifest":       {DeleteOrphan, []string{"from", "manifest", "version", "2", "pause", "2s"}, `"Orphan"`, "example.com/cart:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newRecorder(t)
				if tc.do == DeleteForeground && len(tc.with) == 0 {
					tc.with = []string{"pause", "0s"}
				}
				require.NoError(t, f.do(tc.do, cart, tc.with...))
				deleted := false
				for _, r := range f.requests {
					if r.Method == http.MethodDelete {
						deleted = true
						assert.Contains(t, string(r.Body), tc.policy)
					}
				}
				assert.True(t, deleted, "the workload was deleted by a request")
				live := f.get(cart)
				if tc.image == "" {
					assert.Nil(t, live)
					return
				}
				assert.NotContains(t, world.Section(live, "metadata"), "finalizers")
				assert.Contains(t, string(f.encode(live)), tc.image)
			})
		})
	}
}

func TestNamespaceIsDeletedAndCreatedWithAllThatItHad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newRecorder(t)
		require.NoError(t, f.do(DeleteNamespace, "namespaces/shop", "held", "8s", "pause", "2s"))
		var posted []string
		for _, r := range f.requests {
			if r.Method == http.MethodPost {
				posted = append(posted, r.Path)
			}
		}
		assert.Contains(t, posted, "/api/v1/namespaces?fieldManager=kubectl-create")
		assert.NotContains(t, world.Section(f.get("configmaps/shop/holder"), "metadata"), "finalizers")
		assert.NotNil(t, f.get(cart))
	})
}
