package policy

import (
	"encoding/hex"
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Carry returns states in which the recorded content of a SecretProviderClass is the current one where nothing later is
// known: the pod that had it may be gone, while others still have what was before. See package podstatus. Where there is
// nothing to carry, they are the same states. A Record under another key than the newest one carries its own Entry only: a
// stamp under the newest key then has the older content, and the next rotation restarts the pods.
func (k Known) Carry(current map[reference.Ref]digest.State) map[reference.Ref]digest.State {
	var classes []reference.Ref
	for ref, state := range current {
		if ref.Kind == reference.SecretProviderClass && !state.Absent {
			classes = append(classes, ref)
		}
	}
	if len(classes) == 0 {
		return current
	}
	carried := maps.Clone(current)
	for ref, item := range k.Record.Items(classes) {
		if reference.Later(item.Hint, current[ref].ResourceVersion) {
			carried[ref] = withItem(current[ref], k.Record.Key, item)
		}
	}
	return carried
}

// withItem returns a state with the Entry and the version of a recorded item.
func withItem(state digest.State, id digest.KeyID, item record.Item) digest.State {
	var entry digest.Entry
	if _, err := hex.Decode(entry[:], []byte(item.Entry)); err != nil {
		return state // a Record is parsed: its Entries are hex digits
	}
	state.Entries = maps.Clone(state.Entries)
	if state.Entries == nil {
		state.Entries = map[digest.KeyID]digest.Entry{}
	}
	state.Entries[id], state.ResourceVersion = entry, item.Hint
	return state
}
