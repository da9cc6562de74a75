package action

import (
	"cmp"
	"context"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// reasonReloadUnrecorded is that of the Event about a reload whose last-reload is not stored although it fits.
const reasonReloadUnrecorded = "ReloadUnrecorded"

// reloadUnrecorded is its text.
const reloadUnrecorded = "the workload was reloaded, but the annotation last-reload is not stored: another admission webhook or policy removes or " +
	"replaces it; make it keep annotations that it does not own"

// unexplainedStamp returns the hash of the stored template where it bears another stamp than before that no stored last-reload explains;
// empty otherwise. It costs a read.
func (b *base) unexplainedStamp(ctx context.Context, s gather.Subject) string {
	o, err := b.gather.Stored(ctx, s)
	if err != nil || o.UID() != s.Object.UID() {
		return ""
	}
	view, _ := b.gather.Reader.Read(o)
	before, stored := s.View.Managed, view.Managed
	hash := stored[stamp.Hash]
	if hash == before[stamp.Hash] && stored[stamp.Restart] == before[stamp.Restart] {
		return ""
	}
	last, err := record.ParseLastReload(stored[stamp.LastReload])
	if err == nil && last.BelongsTo(hash) && stored[stamp.LastReload] != before[stamp.LastReload] {
		return ""
	}
	return hash
}

// explainByDecision returns the last reload that was decided and is not stored, for the hash that is. Where it fits, another webhook has
// removed it, which is reported.
func (b *base) explainByDecision(s *gather.Subject, due stamp.Result, hash string) record.LastReload {
	last, _ := record.ParseLastReload(cmp.Or(due.Unwritten, due.Managed[stamp.LastReload]))
	last.Hash = record.HashName(hash)
	s.Effects.Unwritten = true
	if due.Unwritten == "" {
		b.events.Warn(s.Reported(), reasonReloadUnrecorded, reloadUnrecorded)
	}
	return last
}
