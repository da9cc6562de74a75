package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
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
	// Mounted says that the pods that have this content were started with it, so that it is no Change. Only that of a
	// SecretProviderClass is: see package podstatus.
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
	// From is the Entry before, as a Record keeps it.
	From string
	// Causes are texts of Refs.
	Causes []string
}

// maxBecause bounds the text of what has changed, in bytes.
const maxBecause = 320

// Because names what has changed since a recorded Entry (Entry.Short), comma-separated; empty where that is not known.
func (s State) Because(entry string) string {
	i := slices.IndexFunc(s.Steps, func(step Step) bool { return step.From == entry })
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
	// Unread says that this process has not read the state yet, and may read it any moment. It says nothing about the object.
	Unread bool
	// Refused is when the API server last refused what the state depends on; zero where it has not. Who asks again may read it.
	Refused time.Time
}

// ReportHoldAfter is how long a custom resource is held before that is reported: after each change of it, it is held until its
// operator has updated the status.
const ReportHoldAfter = 10 * time.Second

// Withheld reports whether nothing is known of a custom resource, not even what the pods have: it does not count.
func (s State) Withheld() bool { return s.Hold != nil && !s.Absent && s.Entries == nil }

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

// Live stands for whatever config-hash the webhook reads live, in a request for a reload that is bound to a generation:
// for a client whose configuration changes faster than it can prove a digest.
const Live = "live"

// Clean stands in the place of a digest, in a request of a user's write that takes the managed annotations away from an
// excluded workload. It is bound to a generation, too.
const Clean = "clean"

// HashSize is the length of a config-hash in bytes.
const HashSize = 64

// Hash returns the config-hash of live states under a key of the ring; see HashRecorded. The error names the Refs that
// are present but have no Entry under the key: their payload must be read first. What is withheld does not count.
func Hash(id KeyID, states map[reference.Ref]State) (string, error) {
	recorded := make(map[reference.Ref]string, len(states))
	var missing []reference.Ref
	for ref, state := range states {
		entry, ok := state.Entry(id)
		switch {
		case ok:
			recorded[ref] = entry.Short()
		case state.Absent:
			recorded[ref] = ""
		case state.Withheld():
		default:
			missing = append(missing, ref)
		}
	}
	if len(missing) > 0 {
		return "", missingError(id, missing)
	}
	return HashRecorded(id, recorded), nil
}

// HashRecorded returns the config-hash of Entries as a Record keeps them (Entry.Short, empty for an absent object): the
// key id, and the first 56 hex digits of SHA-256 over a version tag and the Refs in their order, each with its Entry.
// So a Record alone suffices to compute the hash, and the hash alone says under which key it can be compared. The set
// of no Refs has a hash too.
func HashRecorded(id KeyID, entries map[reference.Ref]string) string {
	e := newEncoder(sha256.New())
	e.text("pod-reloader config-hash v1")
	e.number(len(entries))
	for _, ref := range slices.SortedFunc(maps.Keys(entries), reference.Ref.Compare) {
		e.text(string(ref.Kind))
		e.text(ref.Name)
		e.text(entries[ref])
	}
	return string(id) + hex.EncodeToString(e.hash.Sum(nil))[:HashSize-len(id)]
}

// KeyOf returns the id of the key that a config-hash was made under; false where the text is not a config-hash. A hash
// of another program can have the same form: its first digits are then the id of a key that no ring holds.
func KeyOf(hash string) (KeyID, bool) {
	if len(hash) != HashSize || strings.Trim(hash, "0123456789abcdef") != "" {
		return "", false
	}
	return KeyID(hash[:keyIDSize]), true
}

// Revision returns the digest that SAP's pod-reloader publishes, bit for bit, for tools that compute it themselves:
// SHA-256, in hex, over one line for each ConfigMap and then each Secret, in the order listed and repeated where they
// are listed twice. A name without a State is absent.
func Revision(namespace string, configMaps, secrets []string, states map[reference.Ref]State) string {
	h := sha256.New()
	revisions(h, reference.ConfigMap, namespace, configMaps, states)
	revisions(h, reference.Secret, namespace, secrets, states)
	return hex.EncodeToString(h.Sum(nil))
}

func revisions(
	w io.Writer, kind reference.Kind, namespace string, names []string, states map[reference.Ref]State,
) {
	var line []byte
	for _, name := range names {
		line = append(line[:0], kind...)
		line = append(line, '/')
		line = append(line, namespace...)
		line = append(line, '/')
		line = append(line, name...)
		line = append(line, '/')
		if state, ok := states[reference.Ref{Kind: kind, Name: name}]; ok && !state.Absent {
			line = append(line, state.UID...)
			line = append(line, '.')
			line = append(line, state.ResourceVersion...)
		}
		line = append(line, '\n')
		_, _ = w.Write(line) // a hash never fails
	}
}

// maxNamed is how many Refs an error names.
const maxNamed = 5

func missingError(id KeyID, refs []reference.Ref) error {
	slices.SortFunc(refs, reference.Ref.Compare)
	return fmt.Errorf("no Entry under digest key %s for %s: their content has not been read",
		reference.Quote(string(id)), reference.List(refs, maxNamed))
}
