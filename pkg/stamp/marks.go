// Package stamp decides which of our annotations belong on a workload after a write: the rules of the admission webhook
// as pure functions.
//
// The webhook asks it for every request; the loop asks it for the one write that it makes itself when no webhook answers.
// Both thus write the same. A decision has two steps, since most requests need no read: Choose finds the first rule that
// fits and says what must be read, Plan.Apply turns the live state into marks. Operations is the way from marks to a JSON
// patch. Each rule has a file of its own; rules.go has their order.
package stamp

import (
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// Slot is a place for one mark.
type Slot string

// The slots. Those of the template are part of what a rollout rolls out; the others are metadata of the workload.
const (
	Hash       Slot = "config-hash of the pod template"
	Restart    Slot = "config-restart of the pod template"
	Record     Slot = "config-record"
	Dummy      Slot = "config-hash of the workload"
	LastReload Slot = "last-reload"
)

// slots lists all slots in the order in which a patch treats them, with the place of each.
var slots = []struct {
	slot     Slot
	template bool
	key      func(annotation.Keys) string
}{
	{Hash, true, func(k annotation.Keys) string { return k.ConfigHash }},
	{Restart, true, func(k annotation.Keys) string { return k.ConfigRestart }},
	{Record, false, func(k annotation.Keys) string { return k.ConfigRecord }},
	{Dummy, false, func(k annotation.Keys) string { return k.ConfigHash }},
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

// only returns a copy that has no more than some slots.
func (m Marks) only(slots ...Slot) Marks {
	part := Marks{}
	part.put(m, slots...)
	return part
}

// put makes some slots hold what they hold in other marks, absence included.
func (m Marks) put(from Marks, slots ...Slot) {
	for _, s := range slots {
		if value, ok := from[s]; ok {
			m[s] = value
		} else {
			delete(m, s)
		}
	}
}

// same reports whether some slots hold the same in both, absence included.
func (m Marks) same(other Marks, slots ...Slot) bool {
	for _, s := range slots {
		a, okA := m[s]
		b, okB := other[s]
		if okA != okB || a != b {
			return false
		}
	}
	return true
}

// sameStamp reports whether both have the same marks on the template.
func (m Marks) sameStamp(other Marks) bool { return m.same(other, Hash, Restart) }

// Known returns the configuration that the pods of a workload with these marks are known to have.
func (m Marks) Known() policy.Known { return policy.KnownOf(m[Hash], m[Record]) }

// LastReload returns the last reload that the marks explain. One that does not belong to the present template, or that
// cannot be read, is none; one in the future counts as now.
func (m Marks) LastReload(now time.Time) (record.LastReload, bool) {
	last, err := record.ParseLastReload(m[LastReload])
	if err != nil || last.Hash != m[Hash] {
		return record.LastReload{}, false
	}
	if last.Time.After(now) {
		last.Time = now
	}
	return last, true
}

// marksOf reads the marks of a workload.
func marksOf(o source, keys annotation.Keys) Marks {
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
