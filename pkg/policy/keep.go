package policy

import (
	"encoding/hex"
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Keep returns states in which a held custom resource has the recorded content: the pods keep what they have, also where
// they are restarted for another reason. Where only the hash of the template is left, that is the content that the workload had
// last. One of which nothing is recorded is withheld. The ring has no keys that are newer
// than that of such content, as a config-hash and a Record are under one key. Where nothing is held, the ring is the same. Keep
// carries, too.
func (k Known) Keep(current map[reference.Ref]digest.State, ring digest.Ring) (map[reference.Ref]digest.State, digest.Ring) {
	current = k.Carry(current)
	held := heldOf(current)
	if len(held) == 0 {
		return current, ring
	}
	last := k.lastGood()
	older, readable := ring.Until(last.Key)
	kept := maps.Clone(current)
	items := last.Items(held)
	for _, ref := range held {
		state := digest.State{Hold: current[ref].Hold}
		if item, recorded := items[ref]; recorded && readable && !item.Absent() {
			state.Entries, ring = map[digest.KeyID]digest.Entry{last.Key: entryOf(item)}, older
		}
		kept[ref] = state
	}
	return kept, ring
}

// heldOf returns the custom resources that are held, in any order.
func heldOf(states map[reference.Ref]digest.State) []reference.Ref {
	var held []reference.Ref
	for ref, state := range states {
		if state.Hold != nil {
			held = append(held, ref)
		}
	}
	return held
}

// entryOf returns an Entry as far as a Record keeps it, which is as far as a config-hash covers it.
func entryOf(item record.Item) digest.Entry {
	var entry digest.Entry
	_, _ = hex.Decode(entry[:], []byte(item.Entry)) // a Record is parsed: its Entries are hex digits
	return entry
}
