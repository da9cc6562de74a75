package stamp

import (
	"cmp"
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func (m Managed) fields() strategy.Fields { return strategy.Parse(m[Fields]) }

func (m Managed) setFields(f strategy.Fields) {
	if text := f.Text(); text != "" {
		m[Fields] = text
	} else {
		delete(m, Fields)
	}
}

// writesFields reports whether a reload writes more than the hash.
func (r Reader) writesFields() bool {
	return cmp.Or(r.Strategy, annotation.ConfigHash) != annotation.ConfigHash
}

// readFields reads what Reloader's strategies have written on the template, where one of them is chosen.
func (r Reader) readFields(o source, v *View) {
	object, whole := o.(workload.Object)
	if !whole || !r.writesFields() {
		return
	}
	v.strategy, v.template = r.Strategy, object.Template()
	v.fields = strategy.Read(v.template)
	v.Managed.setFields(v.fields)
}

// sameTemplate compares the templates of two versions, with all that goes with the hash put aside.
func (r Reader) sameTemplate(old, current workload.Object) bool {
	if !r.writesFields() {
		return old.SameTemplate(current, r.Keys.ConfigHash, r.Keys.ConfigRestart)
	}
	return old.SameTemplateBut(current, strategy.Without, r.Keys.ConfigHash, r.Keys.ConfigRestart, strategy.Annotation)
}

// fieldWriter decides what a strategy of Reloader has on a template.
type fieldWriter struct {
	*facts
	// others are the fields that Stakater's Reloader has written in this write.
	others map[string]bool
}

// after returns what the strategy has on a template that bore the given managed annotations, once it has the live
// state: what a template with that hash had before, so that a rollback finds its pods, else what a reload writes now.
func (w *fieldWriter) after(templateAnnotations Managed, changes []policy.Change) strategy.Fields {
	fields := templateAnnotations.fields()
	if w.New.template == nil {
		return fields
	}
	if hash := w.fresh[Hash]; hash != templateAnnotations[Hash] {
		if earlier, known := w.earlier(hash); known {
			return earlier.On(w.New.template)
		}
	}
	refs, named := w.changedRefs(changes)
	return w.write(fields, refs, named)
}

// earlier returns what a template with a hash had, as far as that is known.
func (w *fieldWriter) earlier(hash string) (strategy.Fields, bool) {
	last, _ := record.ParseLastReload(w.Old.Managed[LastReload]) // without it nothing is known
	for _, t := range append(replacedTemplate(w.Old.Managed, w.Old.fields), last.Templates...) {
		if t.Hash == hash {
			return strategy.Parse(t.Fields), true
		}
	}
	return strategy.Fields{}, false
}

// templates returns what the templates had that a reload replaces by one with a hash, the newest first: the write's own, the stored
// one, and those before.
func (f *facts) templates(templateAnnotations Managed, hash string) []record.Template {
	if f.New.template == nil {
		return nil
	}
	last, _ := record.ParseLastReload(f.Old.Managed[LastReload])
	all := replacedTemplate(f.Old.Managed, f.Old.fields)
	if templateAnnotations[Hash] != f.Old.Managed[Hash] {
		all = append(replacedTemplate(templateAnnotations, templateAnnotations.fields()), all...)
	}
	var kept []record.Template
	for _, t := range append(all, last.Templates...) {
		same := func(other record.Template) bool { return other.Hash == t.Hash }
		if t.Hash != hash && !slices.ContainsFunc(kept, same) {
			kept = append(kept, t)
		}
	}
	return kept
}

// replacedTemplate returns what a template has. A template with config-restart is left out: only the hash comes back. So is one with a hash
// that is not ours and has no place in a last-reload: it is never stamped again.
func replacedTemplate(managed Managed, fields strategy.Fields) []record.Template {
	_, restarted := managed[Restart]
	if hash := managed[Hash]; hash == "" || hash != record.HashName(hash) || restarted {
		return nil
	}
	return []record.Template{{Hash: managed[Hash], Fields: fields.Text()}}
}

// changedRefs returns what a reload is about: all that is tracked, and false, where only the hash was known.
func (w *fieldWriter) changedRefs(changes []policy.Change) (refs []reference.Ref, named bool) {
	for _, c := range changes {
		if c.Ref == policy.Any {
			return w.refs, false
		}
		refs = append(refs, c.Ref)
	}
	return refs, true
}

// write returns the fields after a reload about some Refs. A value that is that of the live state stays as it is. Where it
// is not known which of the Refs have changed, only what is written already and has changed is written again. Reloader knows
// no custom resources, so they leave no trace but the hash.
func (w *fieldWriter) write(fields strategy.Fields, refs []reference.Ref, named bool) strategy.Fields {
	refs = slices.DeleteFunc(slices.Clone(refs), func(ref reference.Ref) bool { return ref.Kind.Custom() })
	if len(refs) == 0 {
		return fields
	}
	users := strategy.UsersOf(w.New.template)
	switch {
	case w.New.strategy == annotation.EnvVars:
		for _, ref := range refs {
			_, exists := fields.Value(strategy.VariableName(ref))
			if exists || named {
				fields = w.writeVariable(fields, ref, users)
			}
		}
	case w.New.strategy == annotation.Annotations && !w.others[strategy.Annotation]:
		// Like Reloader, it names one object: the last one.
		last := len(refs) - 1
		if !named {
			last = slices.IndexFunc(refs, func(ref reference.Ref) bool { return w.outdates(ref, strategy.ParseSource(fields.From)) })
		}
		if last >= 0 {
			fields = w.writeSource(fields, refs[last], users)
		}
	}
	return fields
}

// outdates reports whether an object has changed since the annotation was written about it.
func (w *fieldWriter) outdates(ref reference.Ref, source strategy.Source) bool {
	return source.Is(ref) && !slices.Contains(w.values(ref), source.Hash)
}

func (w *fieldWriter) writeVariable(fields strategy.Fields, ref reference.Ref, users strategy.Users) strategy.Fields {
	name := strategy.VariableName(ref)
	present, exists := fields.Value(name)
	values := w.values(ref)
	switch {
	case len(values) == 0, w.others[name]:
		return fields
	case w.inputs.States[ref].Absent:
		return fields.WithoutVariable(ref)
	case exists && slices.Contains(values, present):
		return fields
	default:
		return fields.WithVariable(w.New.template, users.Of(ref), ref, values[0])
	}
}

func (w *fieldWriter) writeSource(fields strategy.Fields, ref reference.Ref, users strategy.Users) strategy.Fields {
	values := w.values(ref)
	if len(values) == 0 {
		return fields
	}
	source := strategy.NewSource(ref, w.inputs.Namespace, values[0], users.Of(ref))
	source.ObservedAt = w.inputs.Now.Unix()
	return fields.WithSource(source)
}

// values returns what can stand for the live content of a Ref, the one to write first.
func (w *fieldWriter) values(ref reference.Ref) []string {
	var values []string
	for _, key := range slices.Backward(w.inputs.Ring.Keys()) {
		if value, read := strategy.Value(w.inputs.States[ref], key.ID); read {
			values = append(values, value)
		}
	}
	return values
}

// reloadedByReloader reports whether the write is a reload by Stakater's Reloader for some Changes: it has set variables
// of theirs, or the annotation, and nothing else. Its values are then kept. It may be installed beside this program: who
// reloads first spares the other the reload.
func (w *fieldWriter) reloadedByReloader(changes []policy.Change) bool {
	before, after := w.Old.Managed.fields(), w.New.Managed.fields()
	edited := after.Edited(before)
	if len(edited) == 0 || !w.New.Managed.same(w.Old.Managed, Hash, Restart, Record, LastReload) {
		return false
	}
	of := map[string]bool{}
	refs, _ := w.changedRefs(changes)
	for _, ref := range refs {
		of[strategy.VariableName(ref)] = true
		of[strategy.Annotation] = of[strategy.Annotation] || strategy.ParseSource(after.From).Is(ref)
	}
	w.others = map[string]bool{}
	for _, name := range edited {
		if !of[name] {
			return false
		}
		w.others[name] = true
	}
	return !slices.ContainsFunc(before.Variables, func(v strategy.Variable) bool {
		_, there := after.Value(v.Name)
		return !there
	})
}

// shortenSource takes the annotation of a strategy back to what it is in other managed annotations, where it is longer.
func (m Managed) shortenSource(other Managed) {
	fields := m.fields()
	if present := other.fields().From; len(fields.From) > len(present) {
		fields.From = present
		m.setFields(fields)
	}
}

// sourceSize returns how many bytes of annotations the fields take.
func (m Managed) sourceSize() int {
	if from := m.fields().From; from != "" {
		return len(strategy.Annotation) + len(from)
	}
	return 0
}
