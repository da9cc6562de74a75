package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/cluster"
)

// TestSettledClusterWritesNothing looks again at everything: a controller that does not recognize its own status in the form
// in which a store keeps it would write for ever.
func TestSettledClusterWritesNothing(t *testing.T) {
	t.Parallel()
	for f := range forms {
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(k *kit) {
				k.store.form = f
				cart := k.apply(workload("Deployment", "cart:1"))
				k.settle()
				k.image(cart, "cart:broken")
				for _, kind := range []string{"StatefulSet", "DaemonSet"} {
					k.apply(strings.ReplaceAll(workload(kind, "cart:1"), "app: cart", "app: "+kind))
				}
				k.apply(job)
				nightly := k.apply(cronJob)
				k.apply(podWith("envFrom: [{configMapRef: {name: app}}]", ""))
				k.settle()
				_, _ = k.c.RunCronJob(nightly)
				k.settle()
				k.c = cluster.New(k.store, cluster.Options{})
				k.store.changed = k.c.Dirty
				before := k.store.writes
				k.settle()
				assert.Equal(t, before, k.store.writes)
			})
		})
	}
}
