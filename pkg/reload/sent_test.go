package reload

import (
	"testing"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// sent keeps the messages that are put into the outbox.
type sent struct{ messages []outbox.Message }

func (s *sent) Put(m outbox.Message) { s.messages = append(s.messages, m) }

// notes are the texts of the Events.
func (s *sent) notes() []string {
	var notes []string
	for _, m := range s.messages {
		notes = append(notes, m.Event.Note)
	}
	return notes
}

// offered keeps alerts.
type offered struct{ alerts []alert.Reload }

func (o *offered) Offer(r alert.Reload) { o.alerts = append(o.alerts, r) }

// webOf is a workload with an identity.
func webOf(t *testing.T) gather.Subject {
	t.Helper()
	return gather.Subject{
		Key: workload.Key{Kind: "apps/v1/Deployment", Namespace: "shop", Name: "web"},
		Object: summaryOf(workload.Builtin()[1], map[string]any{
			"metadata": map[string]any{"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
		}),
		View: viewOf(t),
	}
}

// reloadAt is a reload by a change of configmap/app.
func reloadAt(at time.Time, hash string) record.LastReload {
	return record.LastReload{
		Time: at, Hash: hash, Cause: record.CauseConfigChange, Changes: []record.Change{{Ref: "configmap/app", Type: record.Modified}},
	}
}

// with returns a workload whose last-reload annotation is this one.
func with(s gather.Subject, last record.LastReload) gather.Subject {
	s.View.Managed = stamp.Managed{stamp.Hash: last.Hash, stamp.LastReload: last.String()}
	return s
}
