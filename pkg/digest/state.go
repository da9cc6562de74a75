package digest

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// State is what is known of one config object at one moment.
type State struct {
	// Absent says that there is no such object; the other fields are then empty.
	Absent bool
	// UID and ResourceVersion are the object's; together they stand for one content, so that an Entry can be kept.
	UID, ResourceVersion string
	// Entries has the Entry under each key of the ring; nil when only the metadata was read.
	Entries map[KeyID]Entry
	// SHA1 is Content.SHA1; empty where it is not needed or was not read.
	SHA1 string
	// Mounted: the pods that have this content were started with it, so that it is no Change. Only for a SecretProviderClass: see
	// package podstatus.
	Mounted bool
	// Hold is set while the state of a custom resource cannot be trusted: the running pods keep what they have.
	Hold *Hold
	// Unverified says why the state of a custom resource could not be read live, if what is known of it instead may be older than what
	// the watches have delivered: it verifies no reload request. Empty otherwise.
	Unverified string
	// Steps are the latest changes of a custom resource, oldest first.
	Steps []Step
}

// Step is a change of a custom resource, because of objects below it.
type Step struct {
	// From is the Entry before under the newest key, as a Record keeps it; Older are those under the older keys of the ring.
	From  string
	Older []string
	// Causes are texts of Refs, with the namespace where it is another one than that of the custom resource: secret/shop/tls.
	Causes []string
}

// maxBecause bounds the text of what has changed, in bytes.
const maxBecause = 320

// Because names what has changed since a recorded Entry (Entry.Short), comma-separated; empty where that is not known.
func (s State) Because(entry string) string {
	i := slices.IndexFunc(s.Steps, func(step Step) bool { return step.From == entry || slices.Contains(step.Older, entry) })
	if i < 0 {
		return ""
	}
	var causes []string
	for _, step := range s.Steps[i:] {
		causes = append(causes, step.Causes...)
	}
	slices.Sort(causes)
	text := ""
	for _, cause := range slices.Compact(causes) {
		if len(text)+1+len(cause) > maxBecause {
			break
		}
		if text != "" {
			text += ","
		}
		text += cause
	}
	return text
}

// Hold says why the state of a custom resource cannot be trusted.
type Hold struct {
	// Reason is for a message.
	Reason string
	// Since is when it began.
	Since time.Time
	// NotReadYet says that this process has not read the state yet, and may read it any moment. It says nothing about the object.
	NotReadYet bool
	// Forbidden says that this process has no permission to read what the state depends on, as its namespaces or the API server say.
	Forbidden bool
	// Refused is when the API server last refused what the state depends on; zero where it has not. A repeated request may read it.
	Refused time.Time
}

// ReportHoldAfter is how long a custom resource is held before that is reported: after each change of it, it is held until its
// operator has updated the status.
const ReportHoldAfter = 10 * time.Second

// Withheld reports whether nothing is known of a custom resource, not even what the pods have: it does not count.
func (s State) Withheld() bool { return s.Hold != nil && !s.Absent && s.Entries == nil }

// SameVersion reports whether two states are of one version of an object, or both of none; of a custom resource, whose state has no
// version, whether they are of one content.
func (s State) SameVersion(other State) bool {
	if s.UID != other.UID || s.ResourceVersion != other.ResourceVersion || s.Absent != other.Absent {
		return false
	}
	return s.ResourceVersion != "" || maps.Equal(s.Entries, other.Entries)
}

// Entry returns the Entry under a key; false when the object is absent or its payload was not read under that key.
func (s State) Entry(id KeyID) (Entry, bool) {
	entry, ok := s.Entries[id]
	return entry, ok && !s.Absent
}

// StateOf returns the State of an object that was read, with an Entry for each key of the ring.
func StateOf(c Content, uid, rv string, ring Ring) State {
	entries := make(map[KeyID]Entry, len(ring.keys))
	for _, key := range ring.keys {
		entries[key.ID] = c.Entry(key)
	}
	return State{UID: uid, ResourceVersion: rv, Entries: entries}
}

// Subset returns the States of some Refs; one that has none is neither absent nor read.
func Subset(states map[reference.Ref]State, refs []reference.Ref) map[reference.Ref]State {
	part := make(map[reference.Ref]State, len(refs))
	for _, ref := range refs {
		part[ref] = states[ref]
	}
	return part
}
