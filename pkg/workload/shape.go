package workload

import (
	"maps"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/skim"
)

// Shape returns the parts of a workload that Object reads, so that nothing else of it needs to be decoded.
func Shape(kind Kind) *skim.Shape {
	shape := objectShape("metadata", "spec")
	shape.Members["metadata"] = objectShape(
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "labels", "annotations", "ownerReferences")
	shape.Members["spec"] = objectShape("paused", "updateStrategy", "workloadRef")
	if kind.isDeploymentConfig() {
		shape.Members["spec"].Members["triggers"] = nil
	}
	if kind.CreateOnly {
		shape.Members["spec"].Members["suspend"] = nil
		shape.Members["status"] = objectShape("conditions")
	}
	template := objectShape("metadata", "spec")
	template.Members["metadata"] = objectShape("annotations")
	template.Members["spec"] = reference.Shape()
	add(shape, kind.Template, template)
	return shape
}

// add adds the shape of what is at a path. What is of interest as a whole stays so.
func add(shape *skim.Shape, path []string, part *skim.Shape) {
	for _, field := range path {
		inner, ok := shape.Members[field]
		switch {
		case !ok:
			inner = objectShape()
			shape.Members[field] = inner
		case inner == nil:
			return
		}
		shape = inner
	}
	maps.Copy(shape.Members, part.Members)
}

func objectShape(members ...string) *skim.Shape {
	shape := &skim.Shape{Members: map[string]*skim.Shape{}}
	for _, name := range members {
		shape.Members[name] = nil
	}
	return shape
}
