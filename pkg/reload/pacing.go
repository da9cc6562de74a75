package reload

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// pacing holds back what is due at the gates, by what is known of the workload.
type pacing struct {
	gates state.Gates
	state *state.State
	now   func() time.Time
	// retry asks the API server again for what it has refused of custom resources.
	retry func(namespace string, refs []reference.Ref)
}

// due records that a reload is due, or may be.
func (p pacing) due(s gather.Subject) {
	since := s.Events.First
	if since.IsZero() {
		since = p.now()
	}
	p.state.Due.Add(s.Key, since)
}

// postpone returns how long the gates hold back what may be due. An adoption is not held back: it restarts nothing, and the
// later it is made, the more changes are taken for what the pods have started with.
func (p pacing) postpone(ctx context.Context, s gather.Subject, a policy.Assessment) time.Duration {
	if !a.MayReload || p.adoptsAtOnce(s) {
		return 0
	}
	in := p.input(s)
	if since := s.Events.First; !since.IsZero() {
		if end := p.gates.RefractoryEnd(in); end.After(since) {
			since = end // the wait until then is asked for
		}
		p.state.Due.Add(s.Key, since)
	}
	wait, gate := p.gates.Wait(in)
	if wait == 0 {
		return 0
	}
	log.FromContext(ctx).V(1).Info("delayed the reload", "workload", s.Key, "gate", gate, "for", wait)
	if gate == state.GateSettle {
		p.state.Changes.WaitToSettle(s.Key, p.now().Add(wait))
	} else {
		p.waits(s)
	}
	return wait
}

// adoptsAtOnce reports whether a workload is a suspended Job whose configuration is recorded without a wait: a user may resume it at any moment,
// as the manifest does that changes both. Under constant change it is recorded as often as others are reloaded.
func (p pacing) adoptsAtOnce(s gather.Subject) bool {
	return s.Object.Kind.CreateOnly && s.Object.Suspended() && !s.Object.Finished() &&
		p.now().Sub(p.state.Writes.AdoptedAt(s.Key)) >= p.gates.Window()
}

// waits records that the workload waits for something that no config event ends. Such an event is looked at no later than it could be
// while the configuration settles: an object that the pods start with by themselves is to be adopted before it changes again.
func (p pacing) waits(s gather.Subject) { p.state.Changes.WaitForOther(s.Key, p.gates.Window()) }

// postponeAgain is postpone for what was found by reading: that may be newer than the events which the attempt began with, and what has
// changed meanwhile is given the time to settle, too.
func (p pacing) postponeAgain(ctx context.Context, s gather.Subject, a policy.Assessment) time.Duration {
	last := p.state.Changes.LastEvent(s.Key)
	if !last.After(s.Events.Last) {
		return 0
	}
	s.Events.Last = last
	if s.Events.FirstUnhandled.IsZero() { // the attempt began without an event to act on
		s.Events.FirstUnhandled = last
	}
	return p.postpone(ctx, s, a)
}

// unreadLook is how often a workload is looked at that waits for custom resources. Not each one that is read is reported: one that does
// not exist is not.
const unreadLook = time.Second

// awaitUnread returns when to look again at a reload that is due while the Record has a custom resource that this process has not read
// yet. This is so at the start of the process, and while it may not read its configuration. It is also so after a permission was withdrawn,
// until the API server has refused it once more. What has changed may have changed below the resource, too, and would restart the pods
// once more. The wait is bounded, since the rest of the configuration must not depend on what may stay unread.
func (p pacing) awaitUnread(ctx context.Context, s gather.Subject, in policy.Input) time.Duration {
	unread, refused := unreadRefs(in)
	if len(unread)+len(refused) == 0 {
		return 0
	}
	since, wait := p.state.ReferentWaits.Wait(s.Key, p.now())
	refused = slices.DeleteFunc(refused, func(ref reference.Ref) bool { return !in.Current[ref].Hold.Refused.Before(since) })
	if wait == 0 || len(unread)+len(refused) == 0 {
		return 0
	}
	if len(refused) > 0 {
		p.retry(s.Key.Namespace, refused)
	}
	log.FromContext(ctx).V(1).Info("waiting for custom resources that have not been read yet", "workload", s.Key, "for", wait)
	return min(wait, unreadLook)
}

// unreadRefs returns the recorded custom resources that have not been read yet, and those that the API server has refused.
func unreadRefs(in policy.Input) (unread, refused []reference.Ref) {
	for _, ref := range in.Refs {
		switch state := in.Current[ref]; {
		case state.Hold == nil, state.Withheld():
		case state.Hold.NotReadYet:
			unread = append(unread, ref)
		case !state.Hold.Refused.IsZero():
			refused = append(refused, ref)
		}
	}
	return unread, refused
}

// lastReload returns when the last reload was that the annotation names; zero if there is none. A time in the future comes from a clock that
// is ahead: the reload was when this process has first seen it. Where it has seen none, since no template bears its stamp, it delays nothing.
func (p pacing) lastReload(s gather.Subject, now time.Time) time.Time {
	at, ok := s.View.Managed.LastReloadTime(now)
	seen := p.state.Reports.Seen(s.Key)
	switch {
	case !ok, seen.IsZero() && !at.Before(now):
		return time.Time{}
	case !seen.IsZero() && seen.Before(at):
		return seen
	default:
		return at
	}
}

// input returns what the gates look at.
func (p pacing) input(s gather.Subject) state.GateInput {
	now := p.now()
	in := state.GateInput{Now: now, FirstUnhandled: s.Events.FirstUnhandled, LastEvent: s.Events.Last}
	in.LastReload = p.lastReload(s, now)
	// Another writer may have removed or reverted the annotation.
	if at := p.state.Writes.StampedAt(s.Key); at.After(in.LastReload) {
		in.LastReload = at
	}
	return in
}
