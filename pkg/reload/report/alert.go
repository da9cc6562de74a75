package report

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// noAlerts drops alerts.
type noAlerts struct{}

func (noAlerts) Accepts(string) bool { return true }

func (noAlerts) Offer(alert.Reload) {}

// alertAbout returns the alert about a reload. Any writer of the workload can edit the annotation that it is made of, so only
// valid names and known words are taken from there.
func alertAbout(s Subject, reload record.LastReload, pending string) alert.Reload {
	a := alert.Reload{
		Time: reload.Time, Kind: s.Object.Kind.Kind, Namespace: s.Key.Namespace, Name: s.Key.Name, Cause: "other", More: reload.More,
		Pending: pending,
	}
	if slices.Contains(causeLabels(), reload.Cause) {
		a.Cause = reload.Cause
	}
	known := []string{record.Created, record.Modified, record.Deleted, record.Listed, record.Unlisted}
	for _, c := range reload.Changes {
		ref, err := reference.Parse(c.Ref)
		if err != nil || ref == policy.Any || !slices.Contains(known, c.Type) {
			a.More++
			continue
		}
		a.Changes = append(a.Changes, alert.Change{Kind: string(ref.Kind), Name: ref.Name, Type: c.Type})
	}
	return a
}
