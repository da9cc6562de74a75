package workload

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Summary reads a workload of which only a part was kept. It returns the same as Object, but only the labels and annotations that were
// kept.
type Summary struct {
	Kind Kind
	// Kept is nil where there is no workload; that reads as an empty one.
	Kept *Kept
}

func (s Summary) kept() *Kept {
	if s.Kept == nil {
		return &Kept{}
	}
	return s.Kept
}

// Name of the workload.
func (s Summary) Name() string { return s.kept().name }

// Namespace of the workload.
func (s Summary) Namespace() string { return s.kept().namespace }

// UID of the workload.
func (s Summary) UID() string { return s.kept().uid }

// ResourceVersion of the workload.
func (s Summary) ResourceVersion() string { return s.kept().resourceVersion }

// Generation of the workload, 0 if it has none.
func (s Summary) Generation() int64 { return s.kept().generation }

// Created is when the workload was created, in whole seconds; zero if that is not known.
func (s Summary) Created() time.Time { return s.kept().created }

// Labels that were kept. The map is a copy.
func (s Summary) Labels() map[string]string { return s.kept().labels.asMap() }

// Annotations that were kept. The map is a copy.
func (s Summary) Annotations() map[string]string { return s.kept().annotations.asMap() }

// WithAnnotation returns the same workload with another value of an annotation. It has no resourceVersion, as none was stored with it.
func (s Summary) WithAnnotation(key, value string) Summary {
	changed := *s.kept()
	all := changed.annotations.asMap()
	if old, ok := all[key]; ok {
		changed.sizes[0] -= len(key) + len(old)
	}
	all[key] = value
	changed.sizes[0] += len(key) + len(value)
	changed.annotations = pairsOf(all, func(string) bool { return true })
	changed.resourceVersion = ""
	return Summary{Kind: s.Kind, Kept: &changed}
}

// TemplateAnnotations returns those annotations of the pod template that were kept. The map is a copy.
func (s Summary) TemplateAnnotations() map[string]string { return s.kept().template.asMap() }

// AnnotationSizes returns the bytes that the keys and values of all annotations take, those included that were not kept.
func (s Summary) AnnotationSizes() (onWorkload, onTemplate int) {
	sizes := s.kept().sizes
	return sizes[0], sizes[1]
}

// HasTemplate reports whether there is a pod template at the kind's path.
func (s Summary) HasTemplate() bool { return s.kept().hasTemplate }

// Controlled reports whether another object made this one and controls it.
func (s Summary) Controlled() bool { return s.kept().controlled }

// Owners that were kept. Do not change them.
func (s Summary) Owners() []reference.Owner { return s.kept().owners }

// Check reports whether annotations can be written where this package looks for them.
func (s Summary) Check() error { return s.kept().misplaced }

// References returns what the pod spec names. Do not change them.
func (s Summary) References() ([]reference.Reference, error) {
	k := s.kept()
	return k.references, k.unreadable
}

// Deleting reports whether the workload is being deleted.
func (s Summary) Deleting() bool { return s.kept().deleting }

// Paused reports whether the controller of the workload leaves a new template alone for now.
func (s Summary) Paused() bool { return s.kept().paused }

// Finished reports whether a Job is complete or has failed. Other kinds never are.
func (s Summary) Finished() bool { return s.kept().finished }

// Suspended reports whether a Job has no pods until it is resumed. Other kinds never are.
func (s Summary) Suspended() bool { return s.kept().suspended }

// ForbidsConcurrent reports whether a CronJob runs no Job beside another one. Other kinds never do.
func (s Summary) ForbidsConcurrent() bool { return s.kept().forbidsConcurrent }

// Pending says why a new template does not replace the running pods now, or "" if it does.
func (s Summary) Pending() string { return s.kept().pending }

// InPlace returns by which strategy the pods of the workload are updated in place, or "" if a new template replaces them.
func (s Summary) InPlace() string { return s.kept().inPlace }

// Matters reports whether a change can change what is due: the spec, or labels, annotations or owners that were kept differ, a
// Job has finished, or it is another object.
func (s Summary) Matters(before Summary) bool {
	a, b := before.kept(), s.kept()
	return s.Written(before) || a.finished != b.finished || !slices.Equal(a.labels, b.labels) || !slices.Equal(a.owners, b.owners)
}

// Written reports whether a change can have started pods, or recorded what they started with: the spec or annotations that were kept
// differ, or it is another object. An annotation that is not kept counts where it raises the generation.
func (s Summary) Written(before Summary) bool {
	a, b := before.kept(), s.kept()
	return a.generation != b.generation || a.uid != b.uid || !slices.Equal(a.annotations, b.annotations)
}

// Summary keeps the whole of a workload that Summary can return.
func (o Object) Summary() Summary {
	all := func(string) bool { return true }
	return Summary{Kind: o.Kind, Kept: o.Keep(Keep{Label: all, Annotation: all, Owner: all})}
}
