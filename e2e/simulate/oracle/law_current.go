package oracle

import (
	"slices"
	"strings"
	"time"
)

// judgeCurrent is the law "current": when all is quiet, each running pod of the present template was started with what its
// workload lists, but for what the program cannot know. Pods of an earlier template wait for their rollout: that is no
// matter of the program.
func (o *Oracle) judgeCurrent(now time.Time) {
	for _, p := range o.sortedPods() {
		w := p.workload
		if w.gone || !p.running {
			continue
		}
		o.count("pods looked at")
		calm, known := o.calmSince(w)
		switch {
		case p.stamp == nil:
			o.count("pods excused: template not known")
		case !w.eligible:
			o.count("pods excused: not looked after")
		case !p.stamp.same(w.last()):
			o.count("pods excused: rollout pending")
		case o.held(w):
			o.count("pods excused: held")
		case o.saysFull(w):
			o.count("pods excused: no room on the template")
		case !known || now.Sub(later(calm, w.eligibleSince)) < recovery:
			o.count("pods excused: fault")
		default:
			o.judgePod(p, now)
		}
	}
}

// judgePod judges the contents that a pod was started with.
func (o *Oracle) judgePod(p *pod, now time.Time) {
	w := p.workload
	o.count("pods judged")
	for _, r := range w.refs {
		h := o.contents.of(w.id.namespace, r)
		content := h.now()
		if o.referentHeld(w, r) {
			o.count("pods excused: custom resource held")
			continue
		}
		if h.at(p.started) == content || content == absent && !w.triggers[r].deleted {
			continue
		}
		last := h.edits[len(h.edits)-1]
		if o.takenFor(p, r, content) || now.Sub(last.at) < recovery {
			o.count("pods excused: adopted or changed back")
			continue
		}
		how := "modified"
		switch {
		case content == absent:
			how = "deleted"
		case h.at(p.started) == absent:
			how = "created"
		}
		signature := how
		if p.stamp != w.last() {
			signature += "/undone"
		}
		if w.lostKeySince(p.stamp) {
			signature += keyLost
		}
		o.violate(now, broken{"current", w.id.String(), signature},
			"pod %s, started at %s (version %d), runs with an old content of %s, which was %s at %s (version %d)",
			p.id.name, o.when(p.startedAt), p.started, r, how, o.when(last.at), last.version)
		return
	}
}

// takenFor reports whether the program may take a content for that of a pod: by the stamp that the pod was started with, or by the last
// one, where that came back with a record of a lost key.
func (o *Oracle) takenFor(p *pod, r ref, content int) bool {
	w := p.workload
	return o.believes(w, p.stamp, r, content) || w.last().foreign && o.believes(w, w.last(), r, content)
}

func (o *Oracle) sortedPods() []*pod {
	pods := make([]*pod, 0, len(o.pods))
	for _, p := range o.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *pod) int { return strings.Compare(a.id.String(), b.id.String()) })
	return pods
}
