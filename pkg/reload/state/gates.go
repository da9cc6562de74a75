package state

import "time"

// Gates hold back a reload that is due. A gate only ever postpones, and what it must remember across a restart of this
// program is on the workload.
type Gates struct {
	// Settle is how long the configuration of a workload must have been quiet; SettleMax bounds the wait, counted from the
	// first change that nothing has acted on.
	Settle, SettleMax time.Duration
	// Refractory is the shortest time between two reloads of one workload.
	Refractory time.Duration
}

// GateSettle is the name of the gate that waits until nothing changes, as the log has it.
const GateSettle = "settle"

// gateRefractory is the name of the other gate.
const gateRefractory = "refractory"

// GateInput is what the gates look at.
type GateInput struct {
	Now time.Time
	// FirstUnhandled and LastEvent are the arrivals of the first change that no attempt has acted on, and of the last change; zero
	// if none was seen, as for a change that happened while the process was down.
	FirstUnhandled, LastEvent time.Time
	// LastReload is the time of the last reload; zero if none is known.
	LastReload time.Time
}

// Wait returns how long to wait before looking again, and which gate holds it back; 0 and "" when all are open.
func (g Gates) Wait(in GateInput) (time.Duration, string) {
	if d := g.SettleWait(in); d > 0 {
		return d, GateSettle
	}
	if d := g.RefractoryWait(in); d > 0 {
		return d, gateRefractory
	}
	return 0, ""
}

// SettleWait returns how long to wait for the first gate alone: until nothing has changed for a while, so that a burst is one reload and
// a release that changes configuration first is one rollout.
func (g Gates) SettleWait(in GateInput) time.Duration {
	if g.Settle <= 0 || in.FirstUnhandled.IsZero() {
		return 0
	}
	quiet := in.LastEvent.Add(g.Settle)
	if latest := in.FirstUnhandled.Add(g.Window()); latest.Before(quiet) {
		quiet = latest
	}
	return max(quiet.Sub(in.Now), 0)
}

// Unsettled reports whether the configuration has not been quiet, although no gate waits for that any more: a digest of it would
// be an old one before the webhook sees it.
func (g Gates) Unsettled(in GateInput) bool {
	return !in.LastEvent.IsZero() && in.Now.Sub(in.LastEvent) < g.Settle
}

// Window is how long changes may go on until they are acted upon.
func (g Gates) Window() time.Duration { return max(g.SettleMax, g.Settle) }

// RefractoryWait returns how long to wait for the second gate alone, which keeps two reloads of one workload apart.
func (g Gates) RefractoryWait(in GateInput) time.Duration {
	return max(g.RefractoryEnd(in).Sub(in.Now), 0)
}

// RefractoryEnd returns when the second gate opens, or has opened; zero if it holds back nothing.
func (g Gates) RefractoryEnd(in GateInput) time.Time {
	if g.Refractory <= 0 || in.LastReload.IsZero() {
		return time.Time{}
	}
	return in.LastReload.Add(g.Refractory)
}
