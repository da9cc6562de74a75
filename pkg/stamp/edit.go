package stamp

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// edit is what a write makes of the managed annotations: the stored ones, and those that it brings, both as ReadWrite has read them. What
// the workload must have as it is stored is Result.Managed.
type edit struct{ old, now Managed }

func (r Write) edit() edit { return edit{old: r.Old.Managed, now: r.New.Managed} }

// keeps reports whether some keys hold what they held, absence included.
func (e edit) keeps(keys ...Key) bool { return e.now.same(e.old, keys...) }

// keepsStamp reports whether the template has what it had.
func (e edit) keepsStamp() bool { return e.now.sameStamp(e.old) }

// movesStamp reports whether the write brings another hash, or another config-restart beside the hash. That it lacks one is no edit.
func (e edit) movesStamp() bool {
	hash, hashed := e.now[Hash]
	restart, restarted := e.now[Restart]
	return hashed && (hash != e.old[Hash] || restarted && restart != e.old[Restart])
}

// sameReload reports whether the write has the last reload that the old object has, or a shortened form of it: our own first pass
// leaves that where the annotations are too large.
func (e edit) sameReload() bool {
	if e.keeps(LastReload) {
		return true
	}
	before, unknown := record.ParseLastReload(e.old[LastReload])
	last, err := record.ParseLastReload(e.now[LastReload])
	return err == nil && unknown == nil && last.Same(before)
}

// newReload returns the last reload that the write brings, if it is a new one.
func (e edit) newReload() (record.LastReload, bool) {
	if e.sameReload() {
		return record.LastReload{}, false
	}
	last, err := record.ParseLastReload(e.now[LastReload])
	return last, err == nil
}

// explained is newReload, if that is of the write's own hash.
func (e edit) explained() (record.LastReload, bool) {
	last, brought := e.newReload()
	return last, brought && last.BelongsTo(e.now[Hash])
}

// bringsRecord reports whether the write brings a Record of its own for its template, as rollout undo of a Deployment does.
func (e edit) bringsRecord() bool {
	_, belongs := e.now.recordOf(e.now[Hash])
	return belongs && !e.keeps(Record)
}

// templateAnnotations returns the managed annotations that the template of the write bears: the write's own; none, if its own Record
// belongs to none (rollout undo to before the first stamp); the old ones, where the write merely lost them. A merge patch of a custom kind
// loses the Fields alone: it replaces lists.
func (e edit) templateAnnotations() Managed {
	_, hashed := e.now[Hash]
	switch {
	case hashed && !e.losesFields():
		return e.now.only(stampKeys()...)
	case e.bringsRecord():
		return e.now.only(Fields)
	default:
		return e.old.only(stampKeys()...)
	}
}

// losesFields reports whether the write has the old hash, and of the Fields that go with it only a part. A rollback that brings a Record has
// the Fields of its pods.
func (e edit) losesFields() bool {
	old, present := e.old.fields(), e.now.fields()
	return e.keeps(Hash, Restart) && !e.bringsRecord() && len(old.Edited(present)) > 0 && len(present.Edited(old)) == 0
}

// setsFields reports whether a write sets what a strategy of Reloader writes, as Stakater's Reloader does. That a manifest lacks it is
// no edit, and neither is a rollback to an earlier stamp, which brings our hash with it.
func (e edit) setsFields() bool {
	return e.keeps(Hash, Restart) && len(e.now.fields().Edited(e.old.fields())) > 0
}

// setByReloader returns the fields that the write sets, if it is a reload by Stakater's Reloader for some Refs: it has set variables of
// theirs, or the annotation, and nothing else; nil if it is none. Reloader may be installed beside this program: who reloads first spares
// the other the reload.
func (e edit) setByReloader(refs []reference.Ref) []string {
	before, after := e.old.fields(), e.now.fields()
	set := after.Edited(before)
	if len(set) == 0 || !e.keeps(Hash, Restart, Record, LastReload) {
		return nil
	}
	of := map[string]bool{}
	for _, ref := range refs {
		of[strategy.VariableName(ref)] = true
		of[strategy.Annotation] = of[strategy.Annotation] || strategy.ParseSource(after.From).Is(ref)
	}
	lost := func(v strategy.Variable) bool {
		_, there := after.Value(v.Name)
		return !there
	}
	if slices.ContainsFunc(set, func(name string) bool { return !of[name] }) || slices.ContainsFunc(before.Variables, lost) {
		return nil
	}
	return set
}

// edited names the managed annotations that the write has and that are not the old ones, and likewise what a strategy of Reloader writes.
func (e edit) edited() []string {
	var edited []string
	for _, s := range managedKeys {
		_, present := e.now[s.key]
		same := e.keeps(s.key) || s.key == LastReload && e.sameReload()
		if s.key != Dummy && present && !same {
			edited = append(edited, string(s.key))
		}
	}
	return append(edited, e.now.fields().Edited(e.old.fields())...)
}

// kept returns what the write has left of the old managed annotations.
func (e edit) kept() Managed {
	kept := e.old.Without(Dummy)
	maps.DeleteFunc(kept, func(key Key, _ string) bool {
		_, there := e.now[key]
		return !there
	})
	kept.setFields(e.old.fields().Common(e.now.fields()))
	return kept
}
