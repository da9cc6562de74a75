package explain

import (
	"cmp"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// pending says why a new template does not restart the pods by itself; empty if it does.
func pending(in Input) string {
	switch action, left := pauseOf(in).Decide(in.Now); {
	case action == pause.None && left > 0:
		return "paused by a reload until " + in.Now.Add(left).UTC().Format(time.RFC3339)
	case action == pause.Resume:
		return "paused by a reload, and the period is over"
	default:
		return cmp.Or(in.Object.Pending(), in.View.InPlace)
	}
}

// pauseOf returns what is known of a pause of ours. Out of scope, the loop ends none.
func pauseOf(in Input) pause.State {
	keys := cmp.Or(in.Stakater, in.Unread)
	if keys == nil || in.Outside != "" || !in.Object.Kind.Pausable() {
		return pause.State{}
	}
	since, ours := in.Object.Annotations()[keys.PausedAt]
	known := pause.State{Period: in.View.Intent.PausePeriod, Paused: in.Object.Paused(), Since: since, Ours: ours}
	if in.Stakater != nil {
		return known
	}
	period, there := in.Object.Annotations()[keys.PausePeriod]
	return known.Unread(annotation.PausePeriod(period), there, in.View.Managed[stamp.LastReload] != "")
}

// notBefore says when a reload that is due is made at the earliest; empty if it need not wait for the refractory period. A last reload in
// the future is by a wrong clock.
func notBefore(in Input, verdict policy.Verdict) string {
	last, ok := in.View.Managed.LastReloadTime(in.Now)
	end := last.Add(in.Refractory)
	if verdict.Action != policy.Reload || !ok || !last.Before(in.Now) || !end.After(in.Now) {
		return ""
	}
	return "; not before " + end.UTC().Format(time.RFC3339) + ", by --refractory"
}
