package stamp

import (
	"fmt"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
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
	consequenceIgnored = "changes are not acted on until the config-record is stored"
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
	// RingRead says that the Ring was read after the write had come: a key that it does not have is lost.
	RingRead bool
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

// live is what the rules take for the present configuration of what a write tracks: the state that was read, but the recorded state of what is
// held or carried (policy.Known.Keep). withAppeared changes it further. Its Known is empty.
type live struct{ policy.Input }

// beside returns what the policy decides from, where the pods are known to have some configuration.
func (l live) beside(known policy.Known) policy.Input {
	l.Known = known
	return l.Input
}

func (l live) assess(known policy.Known) policy.Assessment { return policy.Assess(l.beside(known)) }

// record returns the Record of pods that start with the live state and whose template has a hash.
func (l live) record(hash string, adopted bool) (record.Record, error) {
	return policy.NewRecord(l.Input, hash, adopted)
}

// hash returns the content digest of the live state.
func (l live) hash() (string, error) {
	key, ok := l.Ring.Newest()
	if !ok {
		return "", digest.ErrNoKey
	}
	return digest.Hash(key.ID, digest.Subset(l.Current, l.Refs))
}

// proves reports whether a digest is that of the live state: the content digest under any key of the ring, or SAP's
// revision digest.
func (l live) proves(given string) bool {
	states := digest.Subset(l.Current, l.Refs)
	for _, key := range l.Ring.Keys() {
		if hash, err := digest.Hash(key.ID, states); err == nil && hash == given {
			return true
		}
	}
	return given != "" && l.Revision() == given
}

// unverified says why no digest can be verified: what was read may not be live.
func (l live) unverified() error {
	for _, ref := range l.Refs {
		if reason := l.Current[ref].Unverified; reason != "" {
			return fmt.Errorf("%s may be older than this request: %s", ref, reason)
		}
	}
	return nil
}

// isIn reports whether a Record has the live Entry of each of some Refs.
func (l live) isIn(rec record.Record, refs []reference.Ref) bool {
	items := rec.Items(refs)
	for _, ref := range refs {
		live, ok := record.ItemOf(rec.Key, l.Current[ref])
		if item, recorded := items[ref]; !ok || !recorded || item.Entry != live.Entry {
			return false
		}
	}
	return len(refs) > 0
}

// values returns what a strategy of Reloader can have for the live content of a Ref, the one to write first.
func (l live) values(ref reference.Ref) []string {
	var values []string
	for _, key := range slices.Backward(l.Ring.Keys()) {
		if value, read := strategy.Value(l.Current[ref], key.ID); read {
			values = append(values, value)
		}
	}
	return values
}
