package action

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// A stamp that was not stored is reported once, however often the workload is looked at, and again where the next is lost too.
func TestLostStampIsReportedOnceForEach(t *testing.T) {
	t.Parallel()
	out := &reloadtest.Outbox{}
	actions := newActions(Options{}, out)
	at := func(generation int64) gather.Subject {
		kind := workload.Builtin()[1]
		raw := map[string]any{"metadata": map[string]any{"generation": generation}}
		return gather.Subject{Key: workload.Key{Namespace: "shop", Name: "web"}, Object: reloadtest.Summary(kind, raw), View: reloadtest.View(t)}
	}
	for n, generation := range []int64{2, 3} {
		reloaded{at(generation - 1), policy.Verdict{}, record.LastReload{}, generation}.close(t.Context(), actions)
		for range 3 {
			actions.ReportLostStamp(at(generation))
			InOrder{at(generation)}.close(t.Context(), actions)
		}
		assert.Len(t, out.Messages, n+1)
	}
	actions.ReportLostStamp(at(4))
	assert.Len(t, out.Messages, 2, "another writer has written since")
}
