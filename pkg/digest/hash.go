package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// AnyCurrent stands for whatever config-hash the webhook reads, in a request for a reload that is bound to a generation: for a client whose
// configuration changes faster than it can prove a digest. Requests that are stored have this value, so that it does not change.
const AnyCurrent = "live"

// Mismatch is the type of the cause in the Status of a request that was rejected because its digest is not the current one. The API server
// passes it on, so that it distinguishes this rejection from any other conflict.
const Mismatch = "DigestMismatch"

// Unverifiable is Mismatch for a request that was rejected because its digest cannot be compared now.
const Unverifiable = "DigestUnverifiable"

// Clean is in the place of a digest, in a request of a user's write that takes the managed annotations away from an
// excluded workload. It is bound to a generation, too.
const Clean = "clean"

// Bind returns a request that is for one generation of the workload, with a digest or what stands for one. A kind without generations has 0.
func Bind(given string, generation int64) string {
	return given + "@" + strconv.FormatInt(generation, 10)
}

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
	e.Text("pod-reloader config-hash v1")
	e.Number(len(entries))
	for _, ref := range slices.SortedFunc(maps.Keys(entries), reference.Ref.Compare) {
		e.Text(string(ref.Kind))
		e.Text(ref.Name)
		e.Text(entries[ref])
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

// Revision returns the digest that SAP's pod-reloader publishes for lists without white space and empty items, for tools that compute it:
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
