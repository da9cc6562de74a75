package stamp

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Settings are those of an installation that the rules decide with.
type Settings struct {
	// Revision makes the value of config-hash SAP's revision digest (--hash=revision).
	Revision bool
	// ReloadMissingRequired reloads also when an object that pods need to start was deleted (--missing-required=reload).
	ReloadMissingRequired bool
	// NotifyOnly means that the loop reports Changes instead of reloading (--webhook-url): it adopts them without a stamp.
	NotifyOnly bool
}

// What follows for the changes to come where a Record does not fit.
const (
	consequenceIgnored = "changes are not acted on until the config-record fits"
	consequenceUnnamed = "a change still restarts the pods, but its cause cannot be named"
)

// WhenUnrecorded says what follows for the changes to come of a workload with this config-hash where its Record does not fit.
func (s Settings) WhenUnrecorded(in policy.Input, hash string) string {
	if !s.NotifyOnly && in.RestartsByHash(hash) {
		return consequenceUnnamed
	}
	return consequenceIgnored
}

// Inputs are what was read for a request, and the settings that decide with it.
type Inputs struct {
	Settings

	// States holds every Ref that the Plan asks for. A missing one makes Err necessary.
	States map[reference.Ref]digest.State
	// Err says why the state could not be read.
	Err error
	// Ring are the digest keys.
	Ring digest.Ring
	// Namespace of the workload.
	Namespace string
	// Now is the time that a reload is dated with.
	Now time.Time
}

// Has reports whether the states of some Refs are there.
func (i Inputs) Has(refs []reference.Ref) bool {
	return !slices.ContainsFunc(refs, func(ref reference.Ref) bool {
		_, read := i.States[ref]
		return !read
	})
}

// hasLists reports whether there are lists over which SAP's digest is published.
func (r Write) hasLists() bool {
	return len(r.New.Intent.ConfigMaps)+len(r.New.Intent.Secrets) > 0
}

// revision returns SAP's digest of the live state.
func (f *facts) revision() string {
	return digest.Revision(f.inputs.Namespace, f.New.Intent.ConfigMaps, f.New.Intent.Secrets, f.inputs.States)
}

// proves reports whether a digest is that of the live state: the content digest under any key of the ring, or SAP's
// revision digest.
func (f *facts) proves(given string) bool {
	states := digest.Subset(f.inputs.States, f.refs)
	for _, key := range f.inputs.Ring.Keys() {
		if hash, err := digest.Hash(key.ID, states); err == nil && hash == given {
			return true
		}
	}
	return f.hasLists() && f.revision() == given
}
