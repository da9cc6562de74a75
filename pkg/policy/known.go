package policy

import (
	"errors"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Known is the configuration that the running pods are known to have. The zero value says that nothing is known.
type Known struct {
	// Record is the valid one: it belongs to the template.
	Record record.Record
	// Hash is the config-hash of the template where no valid Record is left: it can still be compared as a whole.
	Hash string
	// Newer says that a newer version of this program wrote the Record: it is neither judged nor replaced.
	Newer bool
}

// KnownOf returns what is known of a template with the given config-hash ("" for none): the first of the texts that is
// a Record of that template, else the hash itself.
func KnownOf(hash string, records ...string) Known {
	for _, text := range records {
		rec, err := record.Parse(text)
		switch {
		case errors.Is(err, record.ErrNewer):
			return Known{Newer: true}
		case err == nil && rec.BelongsTo(hash):
			return Known{Record: rec}
		}
	}
	return Known{Hash: hash}
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
