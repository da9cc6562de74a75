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

// unexplainedStamp returns what is stored on the workload where its template bears another stamp than before that no stored last-reload
// explains; false otherwise, and with an error where that is not known. It costs a read.
func (b *base) unexplainedStamp(ctx context.Context, s gather.Subject) (stamp.Managed, bool, error) {
	o, err := b.gather.Stored(ctx, s)
	if err != nil || o.UID() != s.Object.UID() {
		return nil, false, err
	}
	view, _ := b.gather.Reader.Read(o)
	before, stored := s.View.Managed, view.Managed
	hash := stored[stamp.Hash]
	if hash == "" || hash == before[stamp.Hash] && stored[stamp.Restart] == before[stamp.Restart] {
		return nil, false, nil
	}
	last, err := record.ParseLastReload(stored[stamp.LastReload])
	if err == nil && last.BelongsTo(hash) && stored[stamp.LastReload] != before[stamp.LastReload] {
		return nil, false, nil
	}
	return stored, true, nil
}

// decidedReload returns the last reload that was decided and is not stored, for the hash that is.
func decidedReload(due stamp.Result, hash string) record.LastReload {
	last, _ := record.ParseLastReload(cmp.Or(due.Unwritten, due.Managed[stamp.LastReload])) // a text of this process
	last.Hash = record.HashName(hash)
	return last
}

// markUnwritten notes that no stored last-reload explains a reload. Where it fits, another webhook has removed it, which is reported.
func (b *base) markUnwritten(s *gather.Subject, due stamp.Result) {
	s.Effects.Unwritten = true
	if due.Unwritten == "" {
		b.events.Warn(s.Reported(), reasonReloadUnrecorded, reloadUnrecorded)
	}
}
