package stamp

import (
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Live is what was read for a request.
type Live struct {
	// States holds every Ref that the Plan asks for. A missing one makes Err necessary.
	States map[reference.Ref]digest.State
	// Err says why the state could not be read.
	Err error
	// Ring are the digest keys.
	Ring digest.Ring
	// Namespace of the workload.
	Namespace string
	// Revision makes the value of config-hash SAP's revision digest (--hash=revision).
	Revision bool
	// Now is the time that a reload is dated with.
	Now time.Time
}

// freshMarks returns the hash and Record of the live state, and no other mark.
func (r Request) freshMarks(live Live) (Marks, error) {
	key, ok := live.Ring.Newest()
	if !ok {
		return nil, digest.ErrNoKey
	}
	states := digest.Subset(live.States, r.New.Intent.Refs())
	hash, err := digest.Hash(key.ID, states)
	if err != nil {
		return nil, err
	}
	if live.Revision && r.hasLists() {
		hash = r.revision(live)
	}
	rec, _, err := record.New(key.ID, states, min(record.MaxSize, r.New.TemplateRoom-len(hash)))
	if err != nil {
		return nil, err
	}
	return Marks{Hash: hash, Record: rec.String()}, nil
}

// hasLists tells whether there are lists over which SAP's digest is published.
func (r Request) hasLists() bool {
	return len(r.New.Intent.ConfigMaps)+len(r.New.Intent.Secrets) > 0
}

func (r Request) revision(live Live) string {
	return digest.Revision(live.Namespace, r.New.Intent.ConfigMaps, r.New.Intent.Secrets, live.States)
}

// proves tells whether a digest is that of the live state: the content digest under any key of the ring, or SAP's
// revision digest. It returns the digest to name to who gave a wrong one, and errs where there is none.
func (r Request) proves(live Live, given string) (expected string, right bool, err error) {
	states := digest.Subset(live.States, r.New.Intent.Refs())
	for _, key := range live.Ring.Keys() {
		hash, err := digest.Hash(key.ID, states)
		if err != nil {
			return "", false, err
		}
		right = right || hash == given
		expected = hash // the newest key is the last one
	}
	if expected == "" {
		return "", false, digest.ErrNoKey
	}
	if r.hasLists() {
		revision := r.revision(live)
		right = right || revision == given
		if live.Revision {
			expected = revision
		}
	}
	return expected, right, nil
}

// compare decides for the live state what is due after the old version's known one. Required objects play no part: a
// stamp brings all Changes to the pods.
func (r Request) compare(live Live) policy.Verdict {
	return policy.Decide(policy.Input{
		Intent:                r.New.Intent,
		Required:              r.New.Required,
		Known:                 r.Old.Marks.Known(),
		Current:               live.States,
		Ring:                  live.Ring,
		ReloadMissingRequired: true,
	})
}

// changes returns those Changes that a stamp brings to the pods.
func (r Request) changes(live Live) []policy.Change {
	return r.compare(live).Changes
}

// recordIsLive tells whether a Record names exactly the tracked Refs, each with its live Entry.
func (r Request) recordIsLive(text string, live Live) bool {
	rec, err := record.Parse(text)
	if err != nil {
		return false
	}
	refs := r.New.Intent.Refs()
	if rec.Fold != nil {
		return foldIsLive(rec.Fold, refs, live)
	}
	if len(rec.Items) != len(refs) {
		return false
	}
	for _, ref := range refs {
		if item, ok := rec.Items[ref]; !ok || !itemIsLive(item, live.States[ref]) {
			return false
		}
	}
	return true
}

func foldIsLive(fold *record.Fold, refs []reference.Ref, live Live) bool {
	entry, err := digest.Fold(fold.Key, digest.Subset(live.States, refs))
	return err == nil && fold.Entry == entry && fold.Set == digest.SetDigest(refs)
}

func itemIsLive(item record.Item, state digest.State) bool {
	if item.Absent() || state.Absent {
		return item.Absent() && state.Absent
	}
	entry, ok := state.Entry(item.Key)
	return ok && entry.Short() == item.Entry
}

// honestHint tells whether the hint of an item with the live Entry can do no harm. One that names a revision to come
// would hide the Change that comes with it.
func honestHint(hint, live string) bool {
	if hint == "" || hint == live || !isNumber(hint) {
		return true
	}
	return isNumber(live) && (len(hint) < len(live) || len(hint) == len(live) && hint < live)
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && s[0] != '0'
}
