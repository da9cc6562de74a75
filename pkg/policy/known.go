package policy

import (
	"errors"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Known is the configuration that the running pods are known to have. The zero value says that nothing is known.
type Known struct {
	// Record is the valid one: it belongs to the template.
	Record record.Record
	// Hash is the config-hash of the template where no valid Record is left: it can still be compared as a whole.
	Hash string
	// Last is the Record of another template of the workload, where no valid one is left. It says nothing about the running pods,
	// but what a custom resource that is held was last.
	Last record.Record
	// Newer says that a newer version of this program wrote the Record: it is neither judged nor replaced.
	Newer bool
}

// KnownOf returns what is known of a template with the given config-hash ("" for none): the first of the texts that is
// a Record of that template, else the hash itself, with the first Record of another one.
func KnownOf(hash string, records ...string) Known {
	known := Known{Hash: hash}
	for _, text := range records {
		if text == "" {
			continue
		}
		rec, err := record.Parse(text)
		switch {
		case errors.Is(err, record.ErrNewer):
			return Known{Newer: true}
		case err == nil && rec.BelongsTo(hash):
			return Known{Record: rec}
		case err == nil && known.Last.Key == "":
			known.Last = rec
		}
	}
	return known
}

// AsOf returns the same without the hints that no Record on a workload of the given resourceVersion can have: the objects were read before
// the Record was written. Such a Record comes from another cluster, where versions grow on their own: its hints would make what is
// older there look newer than all that is written here.
func (k Known) AsOf(version string) Known {
	elsewhere := func(hint string) bool { return reference.Later(hint, version) }
	k.Record, k.Last = k.Record.WithoutHints(elsewhere), k.Last.WithoutHints(elsewhere)
	return k
}

// Key returns the id of the digest key under which the configuration is known; empty where nothing is known.
func (k Known) Key() digest.KeyID {
	if k.Hash == "" {
		return k.Record.Key
	}
	key, _ := digest.KeyOf(k.Hash)
	return key
}

// lastGood returns the Record that has the last good content of custom resources: the valid one, or Last.
func (k Known) lastGood() record.Record {
	if k.hasLast() {
		return k.Last
	}
	return k.Record
}

// hasLast reports whether Last can stand in for what is missing beside the hash: a hash is under one key.
func (k Known) hasLast() bool {
	key, ours := digest.KeyOf(k.Hash)
	return ours && k.Last.Key == key
}

// Incomparable reports whether a hash is left that cannot be compared as long as one of some states is held: what is known of that is
// under another key, as where a rollback brings a hash from before a key rotation.
func (k Known) Incomparable(current map[reference.Ref]digest.State) bool {
	return k.Hash != "" && k.Last.Key != "" && !k.hasLast() && len(heldOf(current)) > 0
}

// Unknown returns those of some Refs, in their order, of which nothing is recorded. What a newer version has recorded
// cannot be said.
func (k Known) Unknown(refs []reference.Ref) []reference.Ref {
	if k.Newer {
		return nil
	}
	items := k.Record.Items(refs)
	return slices.DeleteFunc(slices.Clone(refs), func(ref reference.Ref) bool {
		_, ok := items[ref]
		return ok
	})
}
