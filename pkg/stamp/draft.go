package stamp

import (
	"fmt"
	"strconv"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// draft is a decision in the making.
type draft struct {
	Request
	live Live
	// refs are what the write tracks, sorted.
	refs []reference.Ref
	// fresh are the hash and the Record of the live state; nil where nothing was read, or could not be.
	fresh Marks
	// unread says why the live state is not known although the rule needs it.
	unread error
	// noRoom says that a Record was left out.
	noRoom bool
	Result
}

func newDraft(p Plan, req Request, live Live) *draft {
	d := &draft{Request: req, live: live, refs: req.tracked(), Result: Result{Rule: p.Rule, Marks: req.Old.Marks.Without(Dummy)}}
	if len(p.Reads) == 0 {
		return d
	}
	if d.unread = live.Err; d.unread == nil {
		d.fresh, d.unread = d.freshMarks()
	}
	if d.unread != nil {
		d.warn("pod-reloader did not update the config-hash: %s; it retries by itself", bounded(d.unread.Error()))
	}
	return d
}

// freshMarks returns the marks of pods that start with the live state.
func (d *draft) freshMarks() (Marks, error) {
	key, ok := d.live.Ring.Newest()
	if !ok {
		return nil, digest.ErrNoKey
	}
	hash, err := digest.Hash(key.ID, digest.Subset(d.live.States, d.refs))
	if err != nil {
		return nil, err
	}
	if d.live.Revision && d.hasLists() {
		hash = d.revision()
	}
	rec, err := policy.Fresh(d.input(policy.Known{}), hash, false)
	if err != nil {
		return nil, err
	}
	marks := Marks{Hash: hash}
	d.putRecord(marks, rec)
	return marks, nil
}

// input is what the policy decides from.
func (d *draft) input(known policy.Known) policy.Input {
	return policy.Input{
		Namespace:             d.live.Namespace,
		Intent:                d.New.Intent,
		Refs:                  d.refs,
		Required:              d.New.Required,
		Known:                 known,
		Current:               d.live.States,
		Ring:                  d.live.Ring,
		ReloadMissingRequired: d.live.ReloadMissingRequired,
	}
}

func (d *draft) assess(known policy.Known) policy.Assessment { return policy.Assess(d.input(known)) }

// stamp brings the live state to the pods of a template that bears the given marks. Where a reload is due although the
// hash stays the same (the pods run an adopted content, and the stamped one came back), config-restart restarts them.
func (d *draft) stamp(borne Marks, changes []policy.Change) {
	d.Marks.put(d.fresh, Hash, Record)
	delete(d.Marks, Restart)
	switch {
	case d.fresh[Hash] != borne[Hash]:
	case len(changes) > 0:
		d.Marks[Restart] = strconv.FormatInt(d.Old.Generation, 10)
	default:
		d.Marks.put(borne, Restart)
	}
	d.Changes = changes
	d.Stamped = !d.Marks.sameStamp(d.Old.Marks)
}

// reload is stamp with an explanation, where the stamp restarts pods.
func (d *draft) reload(borne Marks, changes []policy.Change, cause string) {
	d.stamp(borne, changes)
	if d.Stamped || d.TemplateChanged {
		d.Marks[LastReload] = d.explain(cause)
	}
}

// putRecord puts a Record into marks, if there is room for it. Without it the hash still detects a Change.
func (d *draft) putRecord(marks Marks, rec record.Record) {
	d.putRecordIn(marks, rec, d.New.RecordRoom())
}

// putRecordIn is putRecord in at most size bytes.
func (d *draft) putRecordIn(marks Marks, rec record.Record, size int) {
	text, fits := rec.Text(size)
	if d.noRoom = !fits; d.noRoom {
		delete(marks, Record)
		return
	}
	marks[Record] = text
}

func (d *draft) warn(format string, values ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, values...))
}

// RecordRoom returns how long the text of a Record may be.
func (v View) RecordRoom() int { return v.WorkloadRoom - len(v.Marks[LastReload]) }
