package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

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

// Hash returns the config-hash: SHA-256, in hex, over a version tag and the Refs in their order, each with its full
// Entry under the given key or a mark that it is absent. The hash of no Refs is a digest as well, and the same under
// every key. The error names the Refs that are present but have no Entry under the key: their payload must be read
// first.
func Hash(id KeyID, states map[reference.Ref]State) (string, error) {
	e := newEncoder(sha256.New())
	e.text("pod-reloader config-hash v1")
	e.number(len(states))
	var missing []reference.Ref
	for _, ref := range sorted(states) {
		state := states[ref]
		e.text(string(ref.Kind))
		e.text(ref.Name)
		if state.Absent {
			e.text("absent")
			continue
		}
		entry, ok := state.Entry(id)
		if !ok {
			missing = append(missing, ref)
			continue
		}
		e.text("present")
		e.bytes(entry[:])
	}
	if len(missing) > 0 {
		return "", missingError(id, missing)
	}
	return hex.EncodeToString(e.hash.Sum(nil)), nil
}

// Fold returns the first 16 hex digits of Hash: one Entry that stands for a whole set.
func Fold(id KeyID, states map[reference.Ref]State) (string, error) {
	full, err := Hash(id, states)
	if err != nil {
		return "", err
	}
	return full[:16], nil
}

// SetDigest returns 8 hex digits that stand for a set of Refs, whatever their content: a folded Record has them, so
// that a changed set is told from a changed content. Order and repetition do not matter.
func SetDigest(refs []reference.Ref) string {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, reference.Ref.Compare)
	refs = slices.Compact(refs)
	e := newEncoder(sha256.New())
	e.text("pod-reloader ref set v1")
	e.number(len(refs))
	for _, ref := range refs {
		e.text(string(ref.Kind))
		e.text(ref.Name)
	}
	return hex.EncodeToString(e.hash.Sum(nil)[:4])
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

func sorted(states map[reference.Ref]State) []reference.Ref {
	return slices.SortedFunc(maps.Keys(states), reference.Ref.Compare)
}

// maxNamed is how many Refs an error names.
const maxNamed = 5

func missingError(id KeyID, refs []reference.Ref) error {
	names := make([]string, 0, maxNamed+1)
	for _, ref := range refs[:min(len(refs), maxNamed)] {
		names = append(names, ref.String())
	}
	if more := len(refs) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("no Entry under digest key %s for %s: their content has not been read",
		reference.Quote(string(id)), strings.Join(names, ", "))
}
