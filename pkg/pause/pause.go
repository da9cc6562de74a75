// Package pause decides about the pauses that users ask for with the reloads of a Deployment: the first reload pauses it, what
// follows in the period is stamped and not rolled out, and its end rolls out all of it at once.
//
// It is one of the pure packages. All that a decision needs is on the Deployment, so that any leader ends a pause in time.
package pause

import "time"

// State is what is known of the pause of a Deployment.
type State struct {
	// Period is how long a reload pauses it; 0 if the user asks for no pause, or for one that is not valid.
	Period time.Duration
	// Paused is spec.paused.
	Paused bool
	// Since is the annotation with the begin of a pause of ours; Ours says that it is there.
	Since string
	Ours  bool
}

// Begins reports whether a reload pauses the Deployment. One that is paused stays as it is: by a pause of ours, whose period
// counts from its begin, or by one of a user, which is never ended here.
func (s State) Begins() bool { return s.Period > 0 && !s.Paused }

// IsDroppedBy reports whether a write leaves the Deployment in a pause of ours, but without its begin: then nothing would end it.
func (s State) IsDroppedBy(written State) bool {
	return s.Ours && s.Paused && written.Paused && !written.Ours
}

// Unread returns what is known of a pause where no dialect reads its period, but the annotation with it may be there. Reloader may run as
// well, and its pauses have the same annotations: a Deployment that pod-reloader has not reloaded has no pause of ours. The pause of one
// that it has reloaded ends in time, unless its period cannot be read: such a pause is not ended.
func (s State) Unread(period time.Duration, there, reloaded bool) State {
	s.Period, s.Ours = period, s.Ours && reloaded && (period > 0 || !there)
	return s
}

// Action is what is due about a pause.
type Action string

const (
	// None means that nothing is due yet.
	None Action = "none"
	// Resume means that the pause has ended.
	Resume Action = "resume"
	// Clean means that another writer has resumed the Deployment: the annotation is removed, so that a pause of a user that follows
	// is not taken for one of ours.
	Clean Action = "clean"
)

// Decide returns what is due about a pause, and how long to wait where nothing is due yet; 0 if there is no pause of ours.
func (s State) Decide(now time.Time) (Action, time.Duration) {
	switch {
	case !s.Ours:
		return None, 0
	case !s.Paused:
		return Clean, 0
	}
	since, err := time.Parse(time.RFC3339, s.Since)
	if err != nil {
		return Resume, 0 // its end is not known
	}
	left := since.Add(s.Period).Sub(now)
	if left <= 0 || left > 2*s.Period {
		return Resume, 0 // it is over, as is any pause whose period was removed; a clock that is so far ahead must not pause for long
	}
	return None, left
}
