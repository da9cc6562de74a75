package world

import (
	"maps"
	"reflect"
	"strings"
)

// Field returns what is at a path of fields; nil if there is nothing.
func Field(o Object, path ...string) any {
	var value any = o
	for _, name := range path {
		object, ok := value.(Object)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// Section returns the object at a path of fields; nil where there is none.
func Section(o Object, path ...string) Object {
	object, _ := Field(o, path...).(Object)
	return object
}

// Text returns the text at a path of fields; empty where there is none.
func Text(o Object, path ...string) string {
	s, _ := Field(o, path...).(string)
	return s
}

// Objects returns the objects in a list at a path of fields.
func Objects(o Object, path ...string) []Object {
	list, _ := Field(o, path...).([]any)
	objects := make([]Object, 0, len(list))
	for _, item := range list {
		if object, ok := item.(Object); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// Controller returns the reference of an object to its controller; nil if there is none.
func Controller(o Object) Object {
	for _, reference := range Objects(o, "metadata", "ownerReferences") {
		if reference["controller"] == true {
			return reference
		}
	}
	return nil
}

// Condition returns the condition of a type in the status of an object; nil if there is none.
func Condition(o Object, kind string) Object {
	for _, condition := range Objects(o, "status", "conditions") {
		if condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// IsTrue reports whether an object has a condition of a type with the status True.
func IsTrue(o Object, kind string) bool { return Text(Condition(o, kind), "status") == "True" }

// Finished reports whether a Job is complete or has failed.
func Finished(job Object) bool { return IsTrue(job, "Complete") || IsTrue(job, "Failed") }

// With returns an object with a value at a path of fields. It copies the objects on the path and shares the rest.
func With(o Object, value any, path ...string) Object {
	copied := maps.Clone(o)
	if copied == nil {
		copied = Object{}
	}
	if len(path) > 1 {
		value = With(Section(o, path[0]), value, path[1:]...)
	}
	copied[path[0]] = value
	return copied
}

// Same reports whether two objects are one map. Stored objects are never changed, so that one map is one content.
func Same(a, b Object) bool {
	return a != nil && b != nil && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// Items returns the items of a comma-separated list, without the empty ones.
func Items(list string) []string {
	var items []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// Annotations returns the annotations of an object.
func Annotations(o Object) Object { return Section(o, "metadata", "annotations") }

// Labels returns the labels of an object.
func Labels(o Object) Object { return Section(o, "metadata", "labels") }

// TemplatePath returns where workloads of a resource have their pod template, e.g. of "deployments"; nil for what is no workload. Jobs
// are none, since their template never changes.
func TemplatePath(plural string) []string {
	switch plural {
	case Deployments.Plural, StatefulSets.Plural, DaemonSets.Plural, Rollouts.Plural:
		return []string{"spec", "template"}
	case CronJobs.Plural:
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return nil
}

// PodPath is TemplatePath, also for Jobs.
func PodPath(plural string) []string {
	if plural == Jobs.Plural {
		return []string{"spec", "template"}
	}
	return TemplatePath(plural)
}
