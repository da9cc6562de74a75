package explain

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// unreadable is the present state of an object that could not be read.
const unreadable = "unreadable"

// unknown is the Verdict, and the difference, where something could not be read or compared.
const unknown = "unknown"

// rows compares each tracked object with what is known of it. proven says that the hash of the template proves the present state of all.
func rows(in Input, decision policy.Input, proven bool) []Row {
	items := decision.Known.Record.Items(in.View.Intent.Refs())
	rows := []Row{}
	for _, ref := range in.View.Intent.Refs() {
		item, recorded := items[ref]
		row := Row{
			Ref:      ref.String(),
			Known:    itemText(item, recorded),
			Adopted:  item.Adopted,
			Now:      stateText(in, decision, ref),
			Required: in.View.Required[ref],
		}
		switch err := in.ReadErrors[ref]; {
		case err != nil:
			row.Now, row.Error, row.Differs = unreadable, err.Error(), unknown
		case in.States[ref].Hold != nil:
			row.Differs = unknown
		case proven:
			row.Known = row.Now
		case !recorded:
			row.Differs = unknown
		default:
			row.Differs = difference(decision, ref, item)
		}
		rows = append(rows, row)
	}
	return rows
}

// difference says how an object differs from what is recorded of it, whether or not that triggers. Where there is no content to compare,
// the recorded resourceVersion still shows that it is the same.
func difference(decision policy.Input, ref reference.Ref, item record.Item) string {
	change, differs, decided := policy.Differs(decision.Known.Record.Key, item, decision.Current[ref])
	switch {
	case !decided:
		return unknown
	case differs:
		return string(change)
	default:
		return ""
	}
}

// differing returns the rows that differ, or may differ.
func differing(rows []Row) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Differs == "" })
}

// changed reports whether a row is known to differ.
func changed(r Row) bool { return r.Differs != "" && r.Differs != unknown }

func itemText(item record.Item, known bool) string {
	switch {
	case !known:
		return unknown
	case item.Absent():
		return "absent"
	default:
		return item.Entry
	}
}

// stateText shows the present Entry under the key that the known one was made with, so that the two can be compared.
func stateText(in Input, decision policy.Input, ref reference.Ref) string {
	state := in.States[ref]
	if state.Hold != nil {
		return "held: " + state.Hold.Reason
	}
	if state.Absent {
		return "absent"
	}
	id := decision.Known.Record.Key
	if newest, ok := in.Ring.Newest(); ok {
		if _, has := in.Ring.Key(id); !has {
			id = newest.ID
		}
	}
	if entry, ok := state.Entry(id); ok {
		return entry.Short()
	}
	return "resourceVersion " + state.ResourceVersion
}
