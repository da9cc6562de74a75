// Package stamp decides which of our annotations must stand on a workload after a write: the rules of the admission
// webhook as pure functions.
//
// The webhook asks it for every request; the loop asks it for the one write that it makes itself when no webhook answers.
// Both thus write the same. A decision has two steps, since most requests need no read: Choose picks the first rule that
// fits and says what must be read, Rule.Apply turns the live state into marks. Operations is the way from marks to a JSON
// patch.
package stamp

import (
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Slot is a place for one mark.
type Slot string

// The slots. Those of the template are part of what a rollout rolls out; the others are metadata of the workload.
const (
	Hash       Slot = "config-hash of the pod template"
	Record     Slot = "config-record of the pod template"
	Dummy      Slot = "config-hash of the workload"
	Baseline   Slot = "config-baseline"
	LastReload Slot = "last-reload"
)

// slots lists all slots in the order in which a patch treats them, with the place of each.
var slots = []struct {
	slot     Slot
	template bool
	key      func(annotation.Keys) string
}{
	{Hash, true, func(k annotation.Keys) string { return k.ConfigHash }},
	{Record, true, func(k annotation.Keys) string { return k.ConfigRecord }},
	{Dummy, false, func(k annotation.Keys) string { return k.ConfigHash }},
	{Baseline, false, func(k annotation.Keys) string { return k.ConfigBaseline }},
	{LastReload, false, func(k annotation.Keys) string { return k.LastReload }},
}

// Marks are the values of our annotations on a workload. A slot that is not in the map holds no annotation.
type Marks map[Slot]string

// Without returns a copy that lacks some slots.
func (m Marks) Without(slots ...Slot) Marks {
	rest := make(Marks, len(m))
	maps.Copy(rest, m)
	for _, s := range slots {
		delete(rest, s)
	}
	return rest
}

// same tells whether a slot holds the same in both, absence included.
func (m Marks) same(other Marks, slot Slot) bool {
	a, okA := m[slot]
	b, okB := other[slot]
	return okA == okB && a == b
}

// marksOf reads the marks of a workload.
func marksOf(o workload.Object, keys annotation.Keys) Marks {
	onWorkload, onTemplate := o.Annotations(), o.TemplateAnnotations()
	marks := Marks{}
	for _, s := range slots {
		from := onWorkload
		if s.template {
			from = onTemplate
		}
		if value, ok := from[s.key(keys)]; ok {
			marks[s.slot] = value
		}
	}
	return marks
}
