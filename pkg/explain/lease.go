package explain

import (
	"fmt"
	"time"
)

// Lease is what the replicas of an installation elect their leader with.
type Lease struct {
	// Name is NAMESPACE/NAME.
	Name string
	// Renewed is when a leader has renewed or released it last, Ends when another replica may take it.
	Renewed, Ends time.Time
}

// handover is how long after the end of a lease no other replica may lead, and clocks may differ.
const handover = 15 * time.Second

// leaderless says that no replica leads, so that nothing is reloaded whatever is due; empty if one does, as far as is known.
func leaderless(in Input) string {
	if in.Lease == nil || in.Now.Before(in.Lease.Ends.Add(handover)) {
		return ""
	}
	return fmt.Sprintf("no replica of pod-reloader leads, so that changes restart nothing, unless it runs without --leader-elect: the lease %s was last renewed %s ago; "+
		"check that the pods run, and that their account may get and update it", in.Lease.Name, age(in.Now, in.Lease.Renewed))
}
