package world

import "strings"

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
