package stamp

import (
	"cmp"
	"slices"
	"time"

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

// fieldWriter writes what a strategy of Reloader has on a template after a reload.
type fieldWriter struct {
	strategy annotation.ReloadStrategy
	template map[string]any
	live     live
	now      time.Time
	// others are the fields that Stakater's Reloader has written in this write.
	others []string
}

// fieldsAfter returns what the strategy has on a template that bore the given managed annotations, once it has the live
// state: what a template with that hash had before, so that a rollback finds its pods, else what a reload writes now.
func (f *facts) fieldsAfter(templateAnnotations Managed, changes []policy.Change, byReloader []string) strategy.Fields {
	fields := templateAnnotations.fields()
	if f.New.template == nil {
		return fields
	}
	if hash := f.fresh[Hash]; hash != templateAnnotations[Hash] {
		for _, t := range f.Old.templates() {
			if t.Hash == hash {
				return strategy.Parse(t.Fields).On(f.New.template)
			}
		}
	}
	w := fieldWriter{strategy: f.New.strategy, template: f.New.template, live: f.live, now: f.now, others: byReloader}
	refs, named := f.live.changed(changes)
	return w.write(fields, refs, named)
}

// templates returns what is known of the templates that the workload had, the stored one first.
func (v View) templates() []record.Template {
	last, _ := record.ParseLastReload(v.Managed[LastReload]) // without it nothing is known
	return append(replacedTemplate(v.Managed, v.fields), last.Templates...)
}

// replacedTemplates returns what the templates had that a reload replaces by one with a hash, the newest first: the write's own, the stored
// one, and those before.
func (f *facts) replacedTemplates(templateAnnotations Managed, hash string) []record.Template {
	if f.New.template == nil {
		return nil
	}
	all := f.Old.templates()
	if templateAnnotations[Hash] != f.Old.Managed[Hash] {
		all = append(replacedTemplate(templateAnnotations, templateAnnotations.fields()), all...)
	}
	var kept []record.Template
	for _, t := range all {
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

// changed returns what a reload is about: all that is tracked, and false, where only the hash was known.
func (l live) changed(changes []policy.Change) (refs []reference.Ref, named bool) {
	for _, c := range changes {
		if c.Ref == policy.Any {
			return l.Refs, false
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
	users := strategy.UsersOf(w.template)
	switch {
	case w.strategy == annotation.EnvVars:
		for _, ref := range refs {
			_, exists := fields.Value(strategy.VariableName(ref))
			if exists || named {
				fields = w.writeVariable(fields, ref, users)
			}
		}
	case w.strategy == annotation.Annotations && !slices.Contains(w.others, strategy.Annotation):
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
	return source.Is(ref) && !slices.Contains(w.live.values(ref), source.Hash)
}

func (w *fieldWriter) writeVariable(fields strategy.Fields, ref reference.Ref, users strategy.Users) strategy.Fields {
	name := strategy.VariableName(ref)
	present, exists := fields.Value(name)
	values := w.live.values(ref)
	switch {
	case len(values) == 0, slices.Contains(w.others, name):
		return fields
	case w.live.Current[ref].Absent:
		return fields.WithoutVariable(ref)
	case exists && slices.Contains(values, present):
		return fields
	default:
		return fields.WithVariable(w.template, users.Of(ref), ref, values[0])
	}
}

func (w *fieldWriter) writeSource(fields strategy.Fields, ref reference.Ref, users strategy.Users) strategy.Fields {
	values := w.live.values(ref)
	if len(values) == 0 {
		return fields
	}
	source := strategy.NewSource(ref, w.live.Namespace, values[0], users.Of(ref))
	source.ObservedAt = w.now.Unix()
	return fields.WithSource(source)
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
