package gather

import (
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// BeforeAppearance returns the input with those of some Refs absent of which nothing is recorded and whose creation was seen, after the
// last write that could have started pods with them. They are recorded as absent, so that their creation is a Change for the webhook,
// and for any later leader, too. found says that there are some. A creation that was not seen is none: the object may have been
// selected later, which restarts nothing.
func (g Gatherer) BeforeAppearance(s Subject, in policy.Input, refs []reference.Ref) (before policy.Input, found bool) {
	since := g.Versions.Since(s.Key)
	if since == "" || in.Known.Hash != "" {
		return in, false
	}
	current := maps.Clone(in.Current)
	for _, ref := range in.Known.Unknown(refs) {
		if in.Intent.Tracked[ref].OnAppear && !current[ref].Absent && later(g.Store.Created(s.Key.Namespace, ref), since) {
			current[ref], found = digest.State{Absent: true}, true
		}
	}
	if found {
		in.Current = current
	}
	return in, found
}
