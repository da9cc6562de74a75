package oracle

import (
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// rules has what follows from the options and one object or request alone.
type rules struct{ options Options }

// isProgram reports whether the program has sent a request; no request is one of a controller.
func (l *rules) isProgram(call *world.Call) bool {
	return call != nil && l.options.Program(call.Client)
}

// isKeySecret reports whether a key is that of the Secret with the digest keys.
func (l *rules) isKeySecret(k world.Key) bool {
	return k.Resource.Plural == "secrets" && k.Namespace == l.options.KeySecret.Namespace && k.Name == l.options.KeySecret.Name
}

// manifestOf returns the UID of the Job whose manifest a Secret has; false if it has none.
func (l *rules) manifestOf(key world.Key) (uid string, is bool) {
	if key.Resource.Plural != secretList || key.Namespace != l.options.KeySecret.Namespace {
		return "", false
	}
	_, uid, is = strings.Cut(key.Name, manifestName)
	return uid, is
}

// isObjectRead reports whether a request reads one config object of a user. Those in the namespace of the installation are the program's.
func (l *rules) isObjectRead(call *world.Call) bool {
	return call.Verb == "get" && isConfig(call.Key.Resource.Plural) && call.Key.Name != "" &&
		call.Key.Namespace != l.options.KeySecret.Namespace
}

// bytesLeftOn returns how many bytes the annotations of others leave on an object.
func (l *rules) bytesLeftOn(object world.Object) int {
	return annotationLimit - l.sizeOfOthers(world.Annotations(object))
}

// sizeOfOthers returns the size of the annotations that are not the program's.
func (l *rules) sizeOfOthers(annotations world.Object) int {
	size := 0
	for name, value := range annotations {
		own := !isManagedAnnotation(name, l.options.Prefix) || name == l.options.Prefix+referentList
		if text, ok := value.(string); ok && own {
			size += len(name) + len(text)
		}
	}
	return size
}

// sizeOf returns the size of annotations.
func sizeOf(annotations world.Object) int {
	size := 0
	for name, value := range annotations {
		if text, ok := value.(string); ok {
			size += len(name) + len(text)
		}
	}
	return size
}

// full reports whether the users' annotations of the pod template leave no space for the one that restarts the pods: the program must
// not make the workload invalid.
func (l *rules) full(w *workload) bool {
	return l.sizeOfOthers(world.Annotations(w.template)) > annotationLimit-len(l.options.Prefix+stampAnnotation)-stampValue
}

// sizeOfLeftovers returns the size of the program's annotations that an object has and its owner lacks, or has with another
// value. The Deployment controller copies annotations to the ReplicaSet and never removes one there, so that the program
// cannot take them back.
func (l *rules) sizeOfLeftovers(annotations, ofOwner world.Object) int {
	size := 0
	for name, value := range annotations {
		if text, ok := value.(string); ok && isManagedAnnotation(name, l.options.Prefix) && ofOwner[name] != value {
			size += len(name) + len(text)
		}
	}
	return size
}

// managedAnnotationsOfRestart are the annotations of a template that decide about a restart.
func (l *rules) managedAnnotationsOfRestart(template world.Object) string {
	annotations := world.Annotations(template)
	return world.Text(annotations, l.options.Prefix+"config-hash") + " " + world.Text(annotations, l.options.Prefix+"config-restart")
}

// recordOf returns what the program has recorded on an object; empty for nothing.
func (l *rules) recordOf(object world.Object) string {
	return world.Text(world.Annotations(object), l.options.Prefix+recordAnnotation)
}

// lacksSpaceForRecord reports whether a workload has no record, and perhaps no space for one.
func (l *rules) lacksSpaceForRecord(object world.Object) bool {
	return l.recordOf(object) == "" && l.bytesLeftOn(object) < recordNeeds
}

// allManagedAnnotations returns the managed annotations on a workload and on its template.
func (l *rules) allManagedAnnotations(object world.Object) string {
	prefix := l.options.Prefix
	path := world.TemplatePath(pluralOf(object))
	return managedAnnotationsOf(world.Annotations(object), prefix) + "\n\n" + managedAnnotationsIn(world.Section(object, path...), prefix)
}

func pluralOf(object world.Object) string {
	kind := world.Text(object, "kind")
	for _, r := range world.Resources() {
		if r.Kind == kind {
			return r.Plural
		}
	}
	return ""
}

// listText returns the lists of an object as they are written.
func (l *rules) listText(object world.Object) string {
	annotations := world.Annotations(object)
	return world.Text(annotations, l.options.Prefix+"configmaps") + "\n" + world.Text(annotations, l.options.Prefix+"secrets")
}
