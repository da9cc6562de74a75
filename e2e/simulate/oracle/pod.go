package oracle

import (
	"strconv"
	"strings"
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
	// createdAt is when it was created, in whole seconds, restarts how many restarts without a new template there were until then.
	createdAt time.Time
	restarts  int
	// late means that the template of its stamp was not that of the workload any more when it was made, or that it came back by a restore:
	// the kubelet starts it again, with the content of that moment.
	late bool
}

// runsSince returns the version whose contents the program may take for those of the pod. It knows nothing of pods: one that is made late
// from an earlier template, as below a partition, is to it like the others of that template.
func (p *pod) runsSince() int64 {
	if p.late {
		return p.stamp.version
	}
	return p.started
}

// ordinal is the number of a pod of a StatefulSet.
func (p *pod) ordinal() int {
	n, _ := strconv.Atoi(p.id.name[strings.LastIndexByte(p.id.name, '-')+1:])
	return n
}

// set is a ReplicaSet or a ControllerRevision: a template of a workload.
type set struct {
	workload *workload
	visible  int
	managed  string
}

// podLog has what is known of pods and of what they are made from.
type podLog struct {
	*rules
	*findings
	*roster

	sets map[string]*set
	// shrunk has the version at which a ReplicaSet was last made smaller, by uid.
	shrunk map[string]int64
	pods   map[id]*pod
}

func newPodLog(r *rules, f *findings, all *roster) *podLog {
	return &podLog{rules: r, findings: f, roster: all, sets: map[string]*set{}, shrunk: map[string]int64{}, pods: map[id]*pod{}}
}

// commitReplicaSet records the template of a ReplicaSet. A Deployment that is created again adopts those that the one before it has left.
func (l *podLog) commitReplicaSet(c world.Commit) {
	if c.New == nil {
		return
	}
	if c.Old != nil && c.Restored == 0 && replicasOf(c.New) < replicasOf(c.Old) {
		l.shrunk[uidOf(c.New)] = c.Version
	}
	kind, owner := controllerOf(c.New)
	if s, known := l.sets[uidOf(c.New)]; known && (owner == "" || owner == s.workload.uid) {
		return
	}
	if kind == "Deployment" || kind == "Rollout" {
		l.recordSet(uidOf(c.New), owner, world.Section(c.New, "spec", "template"))
	}
}

func replicasOf(o world.Object) int64 {
	n, _ := world.Section(o, "spec")["replicas"].(int64)
	return n
}

// commitRevision records the template of a ControllerRevision. Its name follows from the template: that of a workload which is created again
// can have the name of one that was deleted.
func (l *podLog) commitRevision(c world.Commit) {
	key := idOf(c.Key).String()
	if c.New == nil {
		delete(l.sets, key)
		return
	}
	if _, known := l.sets[key]; known {
		return
	}
	template := world.Section(c.New, "data", "spec", "template")
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
	l.recordSet(key, owner, plain)
}

// recordSet records a template of a workload.
func (l *podLog) recordSet(name, owner string, template world.Object) {
	w := l.byUID[owner]
	if w == nil || name == "" || template == nil {
		return
	}
	l.sets[name] = &set{w, w.number(template, l.options.Prefix), managedAnnotationsIn(template, l.options.Prefix)}
}

// commitPod records a stored change of a pod.
func (l *podLog) commitPod(c world.Commit) {
	key := idOf(c.Key)
	p := l.pods[key]
	if c.New == nil || deleting(c.New) {
		delete(l.pods, key)
		return
	}
	if p == nil || p.uid != uidOf(c.New) {
		if p = l.newPod(key, c); p == nil {
			return
		}
		l.pods[key] = p
	}
	if _, owner := controllerOf(c.New); p.workload.uid != owner && l.ownerOf(c.New) != p.workload {
		p.stamp = nil // another controller took it over
	}
	running := world.Text(world.Section(c.New, "status"), "phase") == "Running"
	if running && !p.running {
		p.started, p.startedAt, p.late = c.Version, c.At, p.late || c.Restored > 0 && p.stamp != nil
		l.count("pods started")
	}
	p.running = running
}

// ownerOf returns the workload that a pod belongs to; nil for other pods.
func (l *podLog) ownerOf(object world.Object) *workload {
	kind, owner := controllerOf(object)
	switch kind {
	case "ReplicaSet":
		if s := l.sets[owner]; s != nil {
			return s.workload
		}
		return nil
	case "StatefulSet", "DaemonSet":
		return l.byUID[owner]
	}
	return nil
}

func (l *podLog) newPod(key id, c world.Commit) *pod {
	w := l.ownerOf(c.New)
	if w == nil {
		return nil
	}
	s := l.stampOf(w, c)
	p := &pod{id: key, uid: uidOf(c.New), workload: w, stamp: s, late: s != nil && !s.same(w.last()), createdAt: createdAt(c.New)}
	if last := w.last(); last != nil {
		p.restarts = last.restarts
	}
	return p
}

// stampOf returns the stamp that a new pod was made from: the last one with its template and its managed annotations.
func (l *podLog) stampOf(w *workload, c world.Commit) *stamp {
	managed := managedAnnotationsIn(c.New, l.options.Prefix)
	s := l.setOf(w, c)
	for i := len(w.stamps) - 1; i >= 0; i-- {
		found := w.stamps[i]
		if found.version > c.Version || found.managed != managed {
			continue
		}
		if s != nil && s.visible == found.visible || s == nil && madeFrom(c.New, w.templates[found.visible], l.options.Prefix) {
			return found
		}
	}
	return nil
}

// setOf returns the ReplicaSet or ControllerRevision that a pod was made from; nil if there is none.
func (l *podLog) setOf(w *workload, c world.Commit) *set {
	if kind, owner := controllerOf(c.New); kind == "ReplicaSet" {
		return l.sets[owner]
	}
	revision := world.Text(world.Labels(c.New), "controller-revision-hash")
	if revision == "" {
		return nil
	}
	key := id{"controllerrevisions", c.Key.Namespace, revision}
	if s := l.sets[key.String()]; s != nil {
		return s
	}
	key.name = w.id.name + "-" + revision
	return l.sets[key.String()]
}
