package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// pod is what is known of one pod of a workload.
type pod struct {
	id       id
	uid      string
	workload *workload
	// stamp is the one that the pod was made from; nil if that is not known.
	stamp *stamp
	// started is the version at which it became Running; 0 before.
	started   int64
	startedAt time.Time
	running   bool
}

// set is a ReplicaSet or a ControllerRevision: a template of a workload.
type set struct {
	workload *workload
	visible  int
	marks    string
}

// commitReplicaSet takes note of the template of a ReplicaSet.
func (o *Oracle) commitReplicaSet(c world.Commit) {
	if c.New == nil {
		return
	}
	if c.Old != nil && replicasOf(c.New) < replicasOf(c.Old) {
		o.shrunk[uidOf(c.New)] = c.Version
	}
	if _, known := o.sets[uidOf(c.New)]; known {
		return
	}
	if kind, owner := controllerOf(c.New); kind == "Deployment" || kind == "Rollout" {
		o.noteSet(uidOf(c.New), owner, section(c.New, "spec", "template"))
	}
}

func replicasOf(o world.Object) int64 {
	n, _ := section(o, "spec")["replicas"].(int64)
	return n
}

// commitRevision takes note of the template of a ControllerRevision.
func (o *Oracle) commitRevision(c world.Commit) {
	if c.New == nil {
		return
	}
	key := idOf(c.Key).String()
	if _, known := o.sets[key]; known {
		return
	}
	template := section(c.New, "data", "spec", "template")
	if template == nil {
		return
	}
	plain := make(world.Object, len(template))
	for field, value := range template {
		if field != "$patch" {
			plain[field] = value
		}
	}
	_, owner := controllerOf(c.New)
	o.noteSet(key, owner, plain)
}

func (o *Oracle) noteSet(name, owner string, template world.Object) {
	w := o.byUID[owner]
	if w == nil || name == "" || template == nil {
		return
	}
	o.sets[name] = &set{w, w.number(template, o.options.Prefix), marksIn(template, o.options.Prefix)}
}

// commitPod takes note of a stored change of a pod.
func (o *Oracle) commitPod(c world.Commit) {
	key := idOf(c.Key)
	p := o.pods[key]
	if c.New == nil || deleting(c.New) {
		if p != nil {
			delete(o.pods, key)
			o.judgeKept(p, c)
		}
		return
	}
	if p == nil || p.uid != uidOf(c.New) {
		if p = o.newPod(key, c); p == nil {
			return
		}
		o.pods[key] = p
	}
	if _, owner := controllerOf(c.New); p.workload.uid != owner && o.ownerOf(c.New) != p.workload {
		p.stamp = nil // another controller took it over
	}
	running := text(section(c.New, "status"), "phase") == "Running"
	if running && !p.running {
		p.started, p.startedAt = c.Version, c.At
		o.count("pods started")
	}
	p.running = running
}

// ownerOf returns the workload that a pod belongs to; nil for other pods.
func (o *Oracle) ownerOf(object world.Object) *workload {
	kind, owner := controllerOf(object)
	switch kind {
	case "ReplicaSet":
		if s := o.sets[owner]; s != nil {
			return s.workload
		}
		return nil
	case "StatefulSet", "DaemonSet":
		return o.byUID[owner]
	}
	return nil
}

func (o *Oracle) newPod(key id, c world.Commit) *pod {
	w := o.ownerOf(c.New)
	if w == nil {
		return nil
	}
	return &pod{id: key, uid: uidOf(c.New), workload: w, stamp: o.stampOf(w, c)}
}

// stampOf returns the stamp that a new pod was made from: the last one with its template and its marks.
func (o *Oracle) stampOf(w *workload, c world.Commit) *stamp {
	marks := marksIn(c.New, o.options.Prefix)
	s := o.setOf(w, c)
	for i := len(w.stamps) - 1; i >= 0; i-- {
		found := w.stamps[i]
		if found.version > c.Version || found.marks != marks {
			continue
		}
		if s != nil && s.visible == found.visible || s == nil && madeFrom(c.New, w.templates[found.visible], o.options.Prefix) {
			return found
		}
	}
	return nil
}

// setOf returns the ReplicaSet or ControllerRevision that a pod was made from; nil if there is none.
func (o *Oracle) setOf(w *workload, c world.Commit) *set {
	if kind, owner := controllerOf(c.New); kind == "ReplicaSet" {
		return o.sets[owner]
	}
	revision := text(labelsOf(c.New), "controller-revision-hash")
	if revision == "" {
		return nil
	}
	key := id{"controllerrevisions", c.Key.Namespace, revision}
	if s := o.sets[key.String()]; s != nil {
		return s
	}
	key.name = w.id.name + "-" + revision
	return o.sets[key.String()]
}
