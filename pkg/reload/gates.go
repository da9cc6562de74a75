package reload

import "time"

// gates hold back a reload that is due. A gate only ever postpones, and what it must remember across a restart of this
// program is on the workload.
type gates struct {
	// settle is how long the configuration of a workload must have been quiet; settleMax bounds the wait, counted from the
	// first change that nothing has acted on.
	settle, settleMax time.Duration
	// refractory is the shortest time between two reloads of one workload.
	refractory time.Duration
}

// The names of the gates, as the log has them.
const gateSettle, gateRefractory = "settle", "refractory"

// gateInput is what the gates look at.
type gateInput struct {
	now time.Time
	// unacted and lastEvent are the arrivals of the first change that no attempt has acted on, and of the last change; zero
	// if none was seen, as for a change that happened while the process was down.
	unacted, lastEvent time.Time
	// lastReload is the time of the last reload; zero if none is known.
	lastReload time.Time
}

// wait returns how long to wait before looking again, and which gate holds it back; 0 and "" when all are open.
func (g gates) wait(in gateInput) (time.Duration, string) {
	if d := g.settling(in); d > 0 {
		return d, gateSettle
	}
	if d := g.resting(in); d > 0 {
		return d, gateRefractory
	}
	return 0, ""
}

// settling waits until nothing has changed for a while, so that a burst is one reload and a release that changes
// configuration first is one rollout.
func (g gates) settling(in gateInput) time.Duration {
	if g.settle <= 0 || in.unacted.IsZero() {
		return 0
	}
	quiet := in.lastEvent.Add(g.settle)
	if latest := in.unacted.Add(g.window()); latest.Before(quiet) {
		quiet = latest
	}
	return max(quiet.Sub(in.now), 0)
}

// restless reports whether the configuration has not been quiet, although no gate waits for that any more: a digest of it would
// be an old one before the webhook sees it.
func (g gates) restless(in gateInput) bool {
	return !in.lastEvent.IsZero() && in.now.Sub(in.lastEvent) < g.settle
}

// window is how long changes may go on until they are acted upon.
func (g gates) window() time.Duration { return max(g.settleMax, g.settle) }

// resting keeps two reloads of one workload apart.
func (g gates) resting(in gateInput) time.Duration {
	if g.refractory <= 0 || in.lastReload.IsZero() {
		return 0
	}
	return max(in.lastReload.Add(g.refractory).Sub(in.now), 0)
}
