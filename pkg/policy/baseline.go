package policy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// ErrForeign says that a Baseline cannot be extended without losing what it holds under a key that the ring does not
// have: all Refs must be adopted together, which is done once for a key.
var ErrForeign = errors.New("the baseline was recorded under a digest key that is not there")

// Adoption says what a Baseline shall hold.
type Adoption struct {
	// Input is what the Verdict was decided from, with the contents that Reads asks for.
	Input Input
	// Verdict names the Refs to adopt, and the Changes that must not be lost.
	Verdict Verdict
	// Previous is the valid Baseline to extend, if there is one.
	Previous *record.Baseline
	// TemplateHash is the config-hash of the template, which the Baseline overlays.
	TemplateHash string
	// Limit is the room for the Baseline's text in bytes.
	Limit int
}

// Adopt returns the Baseline that takes the current state of the adopted Refs as known and keeps the rest. folded tells
// that it names no causes any more. It errs where there is no room, a content was not read, or with ErrForeign.
func Adopt(a Adoption) (b record.Baseline, folded bool, err error) {
	kept := a.kept()
	id, err := a.key(kept)
	if err != nil {
		return b, false, err
	}
	adopted, _, err := record.New(id, digest.Subset(a.Input.Current, a.Verdict.Adopt), math.MaxInt)
	if err != nil {
		return b, false, err
	}
	maps.Copy(kept, adopted.Items)
	b = record.Baseline{Over: record.Over(a.TemplateHash), Record: record.Record{Items: kept}}
	if len(b.String()) <= a.Limit {
		return b, false, nil
	}
	return a.fold()
}

// kept returns the items of the previous Baseline that stay. Those of Refs that are not tracked now stay too, because
// without them an older item of the Record would count again; only what cannot be compared any more goes.
func (a Adoption) kept() map[reference.Ref]record.Item {
	kept := map[reference.Ref]record.Item{}
	if a.Previous == nil || a.Input.Known.Fold != nil {
		return kept
	}
	maps.Copy(kept, a.Previous.Items)
	for _, ref := range a.Verdict.Adopt {
		delete(kept, ref)
	}
	maps.DeleteFunc(kept, func(ref reference.Ref, item record.Item) bool {
		_, tracked := a.Input.Intent.Tracked[ref]
		return !tracked && !item.Absent() && !owned(a.Input.Ring, item.Key)
	})
	return kept
}

// key returns the key to record under: the one of the kept items, since one Baseline has one key, else the newest.
func (a Adoption) key(kept map[reference.Ref]record.Item) (digest.KeyID, error) {
	for _, ref := range slices.SortedFunc(maps.Keys(kept), reference.Ref.Compare) {
		item := kept[ref]
		switch {
		case item.Absent():
		case owned(a.Input.Ring, item.Key):
			return item.Key, nil
		default:
			return "", fmt.Errorf("%w: %s", ErrForeign, item.Key)
		}
	}
	return a.newest()
}

func (a Adoption) newest() (digest.KeyID, error) {
	newest, ok := a.Input.Ring.Newest()
	if !ok {
		return "", digest.ErrNoKey
	}
	return newest.ID, nil
}

// fold returns the Baseline over all tracked Refs as one Entry. A pending Change would drown in it, so there must be none.
func (a Adoption) fold() (record.Baseline, bool, error) {
	if len(a.Verdict.Changes) > 0 {
		return record.Baseline{}, false, fmt.Errorf("no room to name %d adopted objects while a change is pending", len(a.Verdict.Adopt))
	}
	id, err := a.newest()
	if err != nil {
		return record.Baseline{}, false, err
	}
	rec, err := record.Folded(id, digest.Subset(a.Input.Current, a.Input.Intent.Refs()))
	if err != nil {
		return record.Baseline{}, false, err
	}
	b := record.Baseline{Over: record.Over(a.TemplateHash), Record: rec}
	if size := len(b.String()); size > a.Limit {
		return record.Baseline{}, false, fmt.Errorf("the annotations have room for a baseline of %d bytes: at least %d are needed", a.Limit, size)
	}
	return b, true, nil
}
