package cluster

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The annotations that the Deployment controller keeps.
const (
	revisionAnnotation        = "deployment.kubernetes.io/revision"
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	desiredAnnotation         = "deployment.kubernetes.io/desired-replicas"
	maxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"
	lastAppliedAnnotation     = "kubectl.kubernetes.io/last-applied-configuration"
	rollbackToAnnotation      = "deprecated.deployment.rollback.to"
)

// historyLength is the limit of the revision-history annotation, in characters.
const historyLength = 2000

// copied reports whether the Deployment's annotation goes to its ReplicaSet.
func copied(name string) bool {
	switch name {
	case revisionAnnotation, revisionHistoryAnnotation, desiredAnnotation, maxReplicasAnnotation, lastAppliedAnnotation, rollbackToAnnotation:
		return false
	}
	return true
}

// nextRevision is one more than the highest of the old ReplicaSets.
func (d *deployment) nextRevision() int64 {
	var highest int64
	for _, set := range d.old {
		highest = max(highest, revisionOf(set.object))
	}
	return highest + 1
}

// freshAnnotations returns what the annotations of the ReplicaSet with the current template become: annotations of the
// Deployment are added and changed, never removed, and its revision becomes the highest (SetNewReplicaSetAnnotations).
func (d *deployment) freshAnnotations(existing world.Object) world.Object {
	annotations := maps.Clone(existing)
	if annotations == nil {
		annotations = world.Object{}
	}
	for name, value := range world.Annotations(d.object) {
		if copied(name) {
			annotations[name] = value
		}
	}
	before, had := annotations[revisionAnnotation].(string)
	old, err := strconv.ParseInt(before, 10, 64)
	if err != nil && before != "" {
		return annotations
	}
	next := d.nextRevision()
	if old >= next {
		return annotations
	}
	annotations[revisionAnnotation] = strconv.FormatInt(next, 10)
	if had {
		earlier, _ := annotations[revisionHistoryAnnotation].(string)
		if history, fits := appendRevision(earlier, before); fits {
			annotations[revisionHistoryAnnotation] = history
		}
	}
	return annotations
}

func appendRevision(history, revision string) (string, bool) {
	if history == "" {
		return revision, true
	}
	kept := strings.Split(history, ",")
	length := len(history) + len(revision) + 1
	for length > historyLength && len(kept) > 0 {
		length -= len(kept[0]) + 1
		kept = kept[1:]
	}
	return strings.Join(append(slices.Clip(kept), revision), ","), length <= historyLength
}

// annotateFresh brings the annotations of the existing ReplicaSet up to date, and takes its revision over (getNewReplicaSet).
func (d *deployment) annotateFresh() {
	annotations := d.freshAnnotations(world.Annotations(d.fresh.object))
	minimum := number(d.object, 0, "spec", "minReadySeconds")
	object := d.fresh.object
	if !equal(world.Annotations(object), annotations) {
		object = world.With(object, annotations, "metadata", "annotations")
	}
	if number(object, 0, "spec", "minReadySeconds") != minimum {
		object = world.With(object, int64(minimum), "spec", "minReadySeconds")
	}
	d.fresh.store(d.c, object)
	d.revision = world.Text(d.fresh.object, "metadata", "annotations", revisionAnnotation)
	if d.hasDeadline() && d.condition("Progressing") == nil {
		d.setCondition("Progressing", "True", "FoundNewReplicaSet", "Found new replica set \""+d.fresh.key.Name+"\"")
	}
}

// store writes the ReplicaSet if it is another one than before.
func (s *replicaSet) store(c *Cluster, object world.Object) {
	if world.Same(s.object, object) {
		return
	}
	if stored := c.put(s.key, object); stored != nil {
		s.object = stored
	}
}

// createFresh creates the ReplicaSet for the current template. If its name is taken, by a ReplicaSet that another
// Deployment left behind, the collision count rises and the next pass tries again.
func (d *deployment) createFresh() {
	template := world.Section(d.object, "spec", "template")
	hash := hashOf(d.c.printOf(d.key, template), number(d.status, 0, "collisionCount"))
	key := world.Key{Resource: world.ReplicaSets, Namespace: d.key.Namespace, Name: d.key.Name + "-" + hash}
	if _, taken := d.c.store.Get(key); taken {
		d.status["collisionCount"] = int64(number(d.status, 0, "collisionCount") + 1)
		return
	}
	labels := plus(world.Section(template, "metadata", "labels"), templateHashLabel, hash)
	selector := world.With(world.Section(d.object, "spec", "selector"), plus(d.selector.labels, templateHashLabel, hash), "matchLabels")
	set := &replicaSet{key: key}
	d.fresh = set
	set.replicas = d.freshReplicas()
	spec := world.Object{
		"replicas": int64(set.replicas), "selector": selector, "template": world.With(template, labels, "metadata", "labels"),
	}
	withCount(spec, "minReadySeconds", number(d.object, 0, "spec", "minReadySeconds"))
	annotations := d.freshAnnotations(nil)
	annotations[desiredAnnotation], annotations[maxReplicasAnnotation] = d.desired()
	set.object = d.c.put(key, world.Object{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": world.Object{
			"name": key.Name, "namespace": key.Namespace, "labels": labels, "annotations": annotations,
			"ownerReferences": []any{d.reference()},
		},
		"spec": spec,
	})
	if set.object == nil {
		d.fresh = nil
		return
	}
	d.revision = annotations[revisionAnnotation].(string)
	if d.hasDeadline() {
		d.setCondition("Progressing", "True", "NewReplicaSetCreated", "Created new replica set \""+key.Name+"\"")
	}
}

// desired returns the desired-replicas and max-replicas annotations.
func (d *deployment) desired() (desired, most string) {
	return strconv.Itoa(d.replicas), strconv.Itoa(d.replicas + d.surge)
}
