package observe

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Change is a version of a workload whose pod template differs from that of the version before.
type Change struct {
	// Time is when the watch delivered the version.
	Time time.Time
	// Generation and ResourceVersion are those of the version.
	Generation      int64
	ResourceVersion string
	// AnnotationsBefore and AnnotationsAfter are those of the pod template.
	AnnotationsBefore, AnnotationsAfter map[string]string
	// ImageBefore and ImageAfter are the images of the containers, comma-separated.
	ImageBefore, ImageAfter string
	// TemplateBefore and TemplateAfter are the whole templates.
	TemplateBefore, TemplateAfter map[string]any
}

// String describes what changed, for the message of a failing test.
func (c Change) String() string {
	var differences []string
	for _, key := range slices.Sorted(maps.Keys(c.AnnotationsAfter)) {
		if before, after := c.AnnotationsBefore[key], c.AnnotationsAfter[key]; before != after {
			differences = append(differences, fmt.Sprintf("%s: %q -> %q", key, before, after))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.AnnotationsBefore)) {
		if _, kept := c.AnnotationsAfter[key]; !kept {
			differences = append(differences, fmt.Sprintf("%s: %q removed", key, c.AnnotationsBefore[key]))
		}
	}
	if c.ImageBefore != c.ImageAfter {
		differences = append(differences, fmt.Sprintf("image: %s -> %s", c.ImageBefore, c.ImageAfter))
	}
	if len(differences) == 0 {
		differences = append(differences, "something but annotations and images")
	}
	return fmt.Sprintf("%s generation %d: %s", c.Time.Format("15:04:05.000"), c.Generation, strings.Join(differences, "; "))
}

// history is what was seen of one object since it was created.
type history struct {
	kind    Kind
	uid     types.UID
	current *unstructured.Unstructured
	// version is the last seen resourceVersion, of the deletion too.
	version  string
	changes  []Change
	versions int
	unseen   int64
	deleted  bool
	// creations is how many objects of this name were seen, one after the other.
	creations int
}

// take notes a version. An object that was deleted and created again starts a new history.
func (h *history) take(object *unstructured.Unstructured, at time.Time) error {
	var err error
	if h.current != nil && h.uid == object.GetUID() {
		err = h.compare(object, at)
	} else {
		h.changes, h.versions, h.unseen = nil, 0, 0
		h.creations++
		_, err = h.kind.template(object)
	}
	h.uid, h.current, h.version, h.deleted = object.GetUID(), object, object.GetResourceVersion(), false
	h.versions++
	return err
}

func (h *history) compare(object *unstructured.Unstructured, at time.Time) error {
	h.unseen += max(0, object.GetGeneration()-h.current.GetGeneration()-1)
	before, err := h.kind.template(h.current)
	after, afterErr := h.kind.template(object)
	if err = cmp.Or(afterErr, err); err != nil || reflect.DeepEqual(before, after) {
		return err
	}
	h.changes = append(h.changes, Change{
		Time: at, Generation: object.GetGeneration(), ResourceVersion: object.GetResourceVersion(),
		AnnotationsBefore: annotations(before), AnnotationsAfter: annotations(after),
		ImageBefore: images(before), ImageAfter: images(after),
		TemplateBefore: before, TemplateAfter: after,
	})
	return nil
}

func annotations(template map[string]any) map[string]string {
	found, _, _ := unstructured.NestedStringMap(template, "metadata", "annotations")
	return found
}

func images(template map[string]any) string {
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	names := make([]string, 0, len(containers))
	for _, c := range containers {
		container, _ := c.(map[string]any)
		image, _ := container["image"].(string)
		names = append(names, image)
	}
	return strings.Join(names, ",")
}
