// Package stamp decides which of our annotations belong on a workload after a write: the rules of the admission webhook
// as pure functions.
//
// The webhook asks it for every request; the loop asks it for the one write that it makes itself when no webhook
// answers. Both thus write the same. A decision has two steps, since most requests need no read: Choose finds the first
// rule that fits and says what must be read, Plan.Apply turns the live state into managed annotations. Operations is
// the way from managed annotations to a JSON patch. Each rule has a file of its own; rules.go has their order. The rules ask
// about one version of a workload (View), about what a write makes of the managed annotations (edit), and about the live state (live).
package stamp

import (
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
)

// Key says which of the managed annotations is meant.
type Key string

// The keys. Those of the template are part of what a rollout rolls out; the others are metadata of the workload.
const (
	Hash       Key = "config-hash of the pod template"
	Restart    Key = "config-restart of the pod template"
	Record     Key = "config-record"
	Dummy      Key = "config-hash of the workload"
	LastReload Key = "last-reload"
	// Fields are no single annotation: they are the text of strategy.Fields, for what a strategy of Reloader has written
	// on the pod template. They go with the Hash.
	Fields Key = "fields of the reload strategy"
)

// stampKeys are the keys of the pod template.
func stampKeys() []Key { return []Key{Hash, Restart, Fields} }

// managedKeys lists all keys in the order in which a patch treats them, with the object that has each.
var managedKeys = []struct {
	key        Key
	template   bool
	annotation func(annotation.Keys) string
}{
	{Hash, true, func(k annotation.Keys) string { return k.ConfigHash }},
	{Restart, true, func(k annotation.Keys) string { return k.ConfigRestart }},
	{Record, false, func(k annotation.Keys) string { return k.ConfigRecord }},
	{Dummy, false, func(k annotation.Keys) string { return k.ConfigHash }},
	{LastReload, false, func(k annotation.Keys) string { return k.LastReload }},
}

// Managed has the values of the annotations that pod-reloader manages on a workload. A key that is not in the map
// means that the workload lacks the annotation.
type Managed map[Key]string

// Without returns a copy that lacks some keys.
func (m Managed) Without(keys ...Key) Managed {
	rest := make(Managed, len(m))
	maps.Copy(rest, m)
	for _, s := range keys {
		delete(rest, s)
	}
	return rest
}

// only returns a copy that has no more than some keys.
func (m Managed) only(keys ...Key) Managed {
	part := Managed{}
	part.put(m, keys...)
	return part
}

// put makes some keys hold what they hold in other managed annotations, absence included.
func (m Managed) put(from Managed, keys ...Key) {
	for _, s := range keys {
		if value, ok := from[s]; ok {
			m[s] = value
		} else {
			delete(m, s)
		}
	}
}

// same reports whether some keys hold the same in both, absence included.
func (m Managed) same(other Managed, keys ...Key) bool {
	for _, s := range keys {
		a, okA := m[s]
		b, okB := other[s]
		if okA != okB || a != b {
			return false
		}
	}
	return true
}

// sameStamp reports whether both have the same on the template.
func (m Managed) sameStamp(other Managed) bool { return m.same(other, stampKeys()...) }

// known returns the configuration that the pods of a workload with these managed annotations are known to have.
func (m Managed) known() policy.Known { return policy.KnownOf(m[Hash], m[Record]) }

// Known returns the configuration that the pods of a workload are known to have.
func (v View) Known() policy.Known { return v.Managed.known().AsOf(v.version) }

// recordOf returns the Record, if it belongs to a template with the given config-hash.
func (m Managed) recordOf(hash string) (record.Record, bool) {
	rec, err := record.Parse(m[Record])
	return rec, err == nil && rec.BelongsTo(hash)
}

// LastReload returns the last reload that the managed annotations explain. One that does not belong to the present
// template, or that cannot be read, is none; one in the future counts as now.
func (m Managed) LastReload(now time.Time) (record.LastReload, bool) {
	last, ok := m.reloadOfAnyTemplate(now)
	if !ok || !last.BelongsTo(m[Hash]) {
		return record.LastReload{}, false
	}
	return last, true
}

// LastReloadTime returns the time of the last reload that an annotation names, whichever template it belongs to: a stamp that is not
// explained may have followed.
func (m Managed) LastReloadTime(now time.Time) (time.Time, bool) {
	last, ok := m.reloadOfAnyTemplate(now)
	return last.Time, ok
}

func (m Managed) reloadOfAnyTemplate(now time.Time) (record.LastReload, bool) {
	last, err := record.ParseLastReload(m[LastReload])
	if err == nil && last.Time.After(now) {
		last.Time = now
	}
	return last, err == nil
}

// ReloadTime returns the time that last-reload names for a reload that is made now. Where the clock is behind that of the API server, it
// is not before the creation of the workload, since a last-reload from before that counts as copied from another workload. It is then
// later than the reload before, so that two reloads with the same hash have different times.
func (v View) ReloadTime(now time.Time) time.Time {
	if !now.Before(v.created) {
		return now
	}
	if before, err := record.ParseLastReload(v.Managed[LastReload]); err == nil && !before.Time.Before(v.created) {
		return before.Time.Add(time.Millisecond)
	}
	return v.created
}

// managedBy reads the managed annotations of a workload.
func managedBy(o source, keys annotation.Keys) Managed {
	onWorkload, onTemplate := o.Annotations(), o.TemplateAnnotations()
	managed := Managed{}
	for _, s := range managedKeys {
		from := onWorkload
		if s.template {
			from = onTemplate
		}
		if value, ok := from[s.annotation(keys)]; ok {
			managed[s.key] = value
		}
	}
	return managed
}
