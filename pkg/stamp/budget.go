package stamp

import (
	"fmt"

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

// putRecord puts a Record, if its text fits into some bytes. What is not tracked is left out first. Without it the hash still detects a Change.
func (m Managed) putRecord(rec record.Record, tracked []reference.Ref, size int) (fits bool) {
	if m[Record], fits = rec.TextFor(tracked, size); !fits {
		delete(m, Record)
	}
	return fits
}

// shorten cuts the Record of managed annotations, then their last-reload, or drops them, so that they fit into the budget of this version:
// the one to be stored. Of the Record, what is not tracked goes first.
func (v View) shorten(managed Managed, tracked []reference.Ref) {
	if left := v.bytesLeft(managed, false); left < 0 {
		if rec, err := record.Parse(managed[Record]); err != nil {
			delete(managed, Record)
		} else {
			managed.putRecord(rec, tracked, len(managed[Record])+left)
		}
	}
	if left := v.bytesLeft(managed, false); left < 0 {
		last, err := record.ParseLastReload(managed[LastReload])
		if text, fits := last.Text(len(managed[LastReload]) + left); err == nil && fits {
			managed[LastReload] = text
		} else {
			delete(managed, LastReload)
		}
	}
}

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
	last, unrecorded := d.Managed[LastReload], d.overBudget || d.Managed[Record] != ""
	d.New.shorten(d.Managed, d.live.Refs)
	if _, explained := d.Managed[LastReload]; !explained && last != "" && last != d.Old.Managed[LastReload] {
		d.Unwritten = last
		d.warn("pod-reloader: the annotations are too large to explain this reload by last-reload; shorten other annotations")
	}
	if _, recorded := d.Managed[Record]; unrecorded && !recorded && (len(d.live.Refs) > 0 || d.New.mayBeTracked()) {
		d.warn(d.unrecordedText())
	}
}

// unrecordedText says that the Record does not fit, and what follows. Where nothing is tracked here, that depends on what another installation
// tracks.
func (d *draft) unrecordedText() string {
	if len(d.live.Refs) == 0 {
		return "pod-reloader: the annotations are too large to keep the config-record, which another installation may need; shorten other annotations"
	}
	return fmt.Sprintf("pod-reloader: the annotations are too large to record %s: %s; list fewer, or shorten other annotations",
		reference.Count(len(d.live.Refs), "config object"), d.WhenUnrecorded(d.live.Input, d.Managed[Hash]))
}

// withoutStamp takes back a stamp that exceeds the budget of the template.
func (d *draft) withoutStamp() {
	if d.Create || d.TemplateChanged {
		d.Managed = d.Managed.Without(Hash, Restart, Record)
		d.Managed.put(d.New.Managed, Fields)
		if rec, err := d.live.record("", true); err == nil && d.ReadError == nil {
			d.putRecord(rec)
		}
	} else {
		d.Managed = d.Old.Managed.Without(Dummy)
	}
	d.Changes, d.Stamped = nil, false
	d.warn("pod-reloader: the annotations of the pod template are too large to add the config-hash; shorten them")
}

// putRecord puts a Record, if its text fits into the budget. Of the last reload only the decided text counts: what the write has is not
// stored.
func (d *draft) putRecord(rec record.Record) {
	d.overBudget = !d.Managed.putRecord(rec, d.live.Refs, d.New.WorkloadBudget-len(d.Managed[LastReload]))
}
