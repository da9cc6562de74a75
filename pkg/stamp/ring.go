package stamp

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
)

// NeedsKey reports whether a ring does not have the key of what is known of the pods, before the write or after it, or of the digest in a
// reload request for this generation: the ring may be old. Of a creation, nothing is compared.
func (r Write) NeedsKey(ring digest.Ring) bool {
	if r.Create {
		return false
	}
	ids := []digest.KeyID{r.Old.Known().Key(), r.knownOf(r.New.Managed).Key()}
	if given, asked := r.dummy(); asked && given.bound {
		id, _ := digest.KeyOf(given.digest)
		ids = append(ids, id)
	}
	return slices.ContainsFunc(ids, func(id digest.KeyID) bool {
		_, has := ring.Key(id)
		return id != "" && !has
	})
}
