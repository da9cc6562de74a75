package reload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestReloadFromTheFutureDelaysTheNextOneOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := newLoop(cluster{}, Options{Now: func() time.Time { return now }, Refractory: 5 * time.Second})
	last := record.LastReload{Time: now.Add(time.Hour), Hash: "abc", Cause: record.CauseConfigChange}
	s := gather.Subject{Key: workload.Key{Name: "web"}, View: stamp.View{Managed: stamp.Managed{stamp.Hash: "abc", stamp.LastReload: last.String()}}}
	l.state.Reports.See(s.Key, last.String(), now)
	wait, gate := l.pacing.gates.Wait(l.pacing.input(s))
	assert.Equal(t, 5*time.Second, wait, "a time in the future counts as now")
	assert.Equal(t, "refractory", gate)
	now = now.Add(5 * time.Second)
	wait, _ = l.pacing.gates.Wait(l.pacing.input(s))
	assert.Zero(t, wait, "but only once: the clock of the replica that wrote it may be wrong by hours")
}
