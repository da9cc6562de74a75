package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
)

// Webhooks without a declaration about side effects would refuse each dry run before or behind ours.
func TestDryRunPassesTheWebhooksOfOthers(t *testing.T) {
	t.Parallel()
	unraced.Test(t)
	run := runner(t)
	for _, where := range []string{"", "before", "after", "around", "checksum"} {
		h := history.History{Form: history.Form, Seed: 1, Setup: history.Setup{Replicas: 1, OtherWebhooks: where, TrackFields: true}}
		for _, act := range [][2]string{
			{"apply-workload", "version"},
			{"ssa-workload", "version"},
			{"release", "version"},
			{"set-env-template", "value"},
			{"verified-reload", "attempts"},
		} {
			h.Steps = append(h.Steps, history.Step{
				Wait: history.Duration(10 * time.Second), Do: act[0], On: "deployments/shop/cart", With: map[string]string{act[1]: "2", "dry": "only"},
			})
		}
		o := run(h)
		assert.Empty(t, o.Violations, where)
		assert.Equal(t, len(h.Steps), o.Judged["acts done"], "with other webhooks: %q", where)
		assert.Zero(t, o.Judged["restarts"], where)
	}
}
