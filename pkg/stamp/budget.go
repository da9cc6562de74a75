package stamp

import (
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// bytesLeft returns how many bytes managed annotations leave on the template of this version, or on the workload. Managed
// annotations that are missing leave the bytes of their keys.
func (v View) bytesLeft(managed Managed, template bool) int {
	left := v.WorkloadBudget
	if template {
		left = v.TemplateBudget - managed.sourceSize() + v.Managed.sourceSize()
	}
	for _, s := range managedKeys {
		if s.template != template {
			continue
		}
		if value, there := managed[s.key]; there {
			left -= len(value)
		} else {
			left += v.keySizes[s.key]
		}
	}
	return left
}

// RecordBudget returns how long the text of a Record may be beside the last reload that the workload has.
func (v View) RecordBudget() int { return v.WorkloadBudget - len(v.Managed[LastReload]) }

// dropUntilValid shortens or drops what would make the object invalid, the least important first: without the Record the hash still
// detects a Change, while a reload without last-reload has no Event, unless the loop asked for it. What the write itself has may go, too:
// the API server checks the size after admission, and the write must have the budget that it would have without us.
func (d *draft) dropUntilValid() {
	if d.New.bytesLeft(d.Managed, true) < 0 {
		d.Managed.shortenSource(d.New.Managed)
	}
	if d.New.bytesLeft(d.Managed, true) < 0 {
		d.withoutStamp()
	}
	if left := d.New.bytesLeft(d.Managed, false); left < 0 {
		d.shorten(len(d.Managed[Record]) + left)
	}
	if left := d.New.bytesLeft(d.Managed, false); left < 0 {
		d.shortenLastReload(len(d.Managed[LastReload]) + left)
	}
	if _, recorded := d.Managed[Record]; d.overBudget && !recorded {
		d.warnUnrecorded(reference.Count(len(d.tracked()), "config object"))
	}
}

// withoutStamp takes back a stamp that exceeds the budget of the template.
func (d *draft) withoutStamp() {
	if d.Create || d.TemplateChanged {
		d.Managed = d.Managed.Without(Hash, Restart, Record)
		d.Managed.put(d.New.Managed, Fields)
		if rec, err := policy.NewRecord(d.input(policy.Known{}), "", true); err == nil && d.ReadError == nil {
			d.putRecord(d.Managed, rec)
		}
	} else {
		d.Managed = d.Old.Managed.Without(Dummy)
	}
	d.Changes, d.Stamped = nil, false
	d.warn("pod-reloader: the annotations of the pod template are too large to add the config-hash; shorten them")
}

// shorten brings the Record to a size, or drops it.
func (d *draft) shorten(size int) {
	rec, err := record.Parse(d.Managed[Record])
	if err != nil {
		d.overBudget = d.overBudget || d.Managed[Record] != ""
		delete(d.Managed, Record)
		return
	}
	d.putRecordIn(d.Managed, rec, size)
}

// shortenLastReload brings the explanation of the last reload to a size, or drops it.
func (d *draft) shortenLastReload(size int) {
	last, err := record.ParseLastReload(d.Managed[LastReload])
	if text, fits := last.Text(size); err == nil && fits {
		d.Managed[LastReload] = text
		return
	}
	if !d.Managed.same(d.Old.Managed, LastReload) {
		d.Unwritten = d.Managed[LastReload]
		d.warn("pod-reloader: the annotations are too large to explain this reload by last-reload; shorten other annotations")
	}
	delete(d.Managed, LastReload)
}

// putRecord puts a Record into managed annotations, if its text fits into the budget. Without it the hash still detects a Change.
// Of the last reload only the decided text counts: what the write has is not stored.
func (d *draft) putRecord(managed Managed, rec record.Record) {
	d.putRecordIn(managed, rec, d.New.WorkloadBudget-len(d.Managed[LastReload]))
}

// putRecordIn is putRecord in at most size bytes. What is not tracked is left out first.
func (d *draft) putRecordIn(managed Managed, rec record.Record, size int) {
	text, fits := rec.TextFor(d.refs, size)
	if d.overBudget = !fits; d.overBudget {
		delete(managed, Record)
		return
	}
	managed[Record] = text
}

// warnUnrecorded says what follows where the Record does not fit.
func (d *draft) warnUnrecorded(objects string) {
	d.warn("pod-reloader: the annotations are too large to record %s: %s; list fewer, or shorten other annotations",
		objects, d.inputs.WhenUnrecorded(d.input(policy.Known{}), d.Managed[Hash]))
}
