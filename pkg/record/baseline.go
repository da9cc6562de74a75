package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Baseline says which content the running pods are taken to have although no rollout recorded it: objects that were
// there when pod-reloader first looked at the workload.
type Baseline struct {
	// Over is the config-hash of the template that the Baseline overlays, in the form that the function Over gives it;
	// empty when that template bears none. If the template bears another one by now, the Baseline is void.
	Over string
	Record
}

// Over brings the config-hash found on a template into the form that a Baseline keeps: as it is if it consists of 1 to
// 64 letters and digits, as all of ours do, and otherwise (somebody else's) its SHA-256 in hex. No hash stays no hash.
func Over(hash string) string {
	if hash == "" || isToken(hash) {
		return hash
	}
	sum := sha256.Sum256([]byte(hash))
	return hex.EncodeToString(sum[:])
}

// ParseBaseline reads the text of a Baseline: that of a Record with what it overlays ("-" for nothing) after the key
// id, such as
//
//	v1:1c9e04ab:-:configmap/app=9a0c4f1122334455@81234
//
// It is as strict as Parse and its errors are of the same kind.
func ParseBaseline(s string) (Baseline, error) {
	rest, err := cutVersion(s)
	if err != nil {
		return Baseline{}, fmt.Errorf("read config baseline: %w", err)
	}
	key, rest, _ := strings.Cut(rest, ":")
	over, items, found := strings.Cut(rest, ":")
	if !found {
		return Baseline{}, errors.New(`read config baseline: it is not of the form version:key:hash:items`)
	}
	if over != gone && !isToken(over) {
		return Baseline{}, fmt.Errorf(`read config baseline: the hash %s is neither "-" nor 1 to %d letters and digits`,
			reference.Quote(over), maxToken)
	}
	r, err := parseItems(key, items)
	if err != nil {
		return Baseline{}, fmt.Errorf("read config baseline: %w", err)
	}
	return Baseline{Over: strings.TrimPrefix(over, gone), Record: r}, nil
}

// String returns the text of the Baseline; what is said of the Record's holds here too.
func (b Baseline) String() string {
	over := Over(b.Over)
	if over == "" {
		over = gone
	}
	return b.text(over + ":")
}

// Known is the known state of a workload: its Record overlaid with a valid Baseline. A tracked Ref that is not in it is
// unknown, which is not the same as absent.
type Known struct {
	Items map[reference.Ref]Item
	Fold  *Fold
}

// Empty tells whether nothing is known.
func (k Known) Empty() bool {
	return len(k.Items) == 0 && k.Fold == nil
}

// Resolve returns the known state for a template that bears the given config-hash ("" for none). A Baseline over
// another hash is void; nil is none. The overlay is item by item; if either side is folded, a valid Baseline with
// anything in it counts alone, so whoever adds a Baseline to a folded Record must write a complete one.
//
// The result may share its map with the arguments: it is for reading only.
func Resolve(rec Record, b *Baseline, templateHash string) Known {
	known := Known(rec)
	if b == nil || b.Over != Over(templateHash) || Known(b.Record).Empty() {
		return known
	}
	if rec.Fold != nil || b.Fold != nil || len(rec.Items) == 0 {
		return Known(b.Record)
	}
	known.Items = maps.Clone(rec.Items)
	maps.Copy(known.Items, b.Items)
	return known
}
