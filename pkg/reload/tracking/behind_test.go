package tracking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// getting are workloads that change while the loop asks for one.
type getting struct {
	workloadsOf

	change func()
}

func (g getting) Get(namespace, name string) (workload.Summary, bool) {
	g.change()
	return g.workloadsOf.Get(namespace, name)
}

// A standby reconciles nothing: what it keeps of a workload that is gone stays until another one of its name goes.
func TestEventBehindTheEndOfItsWorkloadIsForgotten(t *testing.T) {
	t.Parallel()
	running := jobVersion("u", "7", false)
	none, key := workload.Summary{Kind: running.Kind}, running.Key()
	event := configstate.Event{Namespace: key.Namespace, Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}, Received: time.Now()}
	for name, tc := range map[string]struct {
		// change happens when the event has found the workload in the index; without it, the event comes while the workload is deleted.
		change func(l *fixture, w *watched)
		kept   bool
	}{
		"the workload stays":                  {change: func(*fixture, *watched) {}, kept: true},
		"the workload is deleted":             {change: func(l *fixture, w *watched) { l.tracking.changes.changed(w, running, none, "") }},
		"its kind is not watched any more":    {change: func(l *fixture, w *watched) { l.tracking.stopKind(w.kind) }},
		"the event comes while it is deleted": {},
		"another one of its name is created": {
			change: func(l *fixture, w *watched) { l.tracking.changes.changed(w, running, jobVersion("v", "9", false), "") }, kept: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l *fixture
			deleting := false
			l = standby(Options{Reader: stakaterReader(), FollowJobs: true, Ignores: func(workload.Summary, bool) bool {
				if deleting {
					deleting = false
					l.tracking.ConfigChanged(event)
				}
				return false
			}})
			w := &watched{kind: running.Kind, stop: func() {}, stopped: make(chan struct{})}
			close(w.stopped)
			w.workloads = getting{change: func() {
				if tc.change != nil {
					tc.change(l, w)
				}
			}}
			l.tracking.watches.add(w)
			l.tracking.changes.changed(w, none, running, "")
			require.True(t, l.tracking.index.Has(key), "the workload is tracked before it ends")
			if tc.change != nil {
				l.tracking.ConfigChanged(event)
			} else {
				deleting = true
				l.tracking.changes.changed(w, running, none, "")
			}
			assert.Equal(t, tc.kept, l.tracking.index.Has(key))
			assert.Equal(t, tc.kept, !l.state.Changes.LastEvent(key).IsZero())
		})
	}
}
