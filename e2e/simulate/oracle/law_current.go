package oracle

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// currentLaw is the law "current".
type currentLaw struct {
	*ledger
	passive
}

// quiet is the law "current": when all is quiet, each running pod of the present template was started with what its
// workload lists, but for what the program cannot know. Pods of an earlier template wait for their rollout: that is no
// matter of the program.
func (l *currentLaw) quiet(now time.Time) {
	for _, p := range l.sortedPods() {
		w := p.workload
		if w.gone || !p.running {
			continue
		}
		l.count("pods looked at")
		calm, known := l.calmSince(w)
		switch {
		case p.stamp == nil:
			l.count("pods excused: template not known")
		case !w.eligible:
			l.count("pods excused: not looked after")
		case !p.stamp.same(w.last()), p.restarts < w.last().restarts:
			l.judgeRollout(p, now)
		case l.held(w):
			l.count("pods excused: held")
		case l.saysFull(w):
			l.count("pods excused: no space on the template")
		case !known || now.Sub(later(calm, w.eligibleSince)) < recovery:
			l.count("pods excused: fault")
		default:
			l.judgePod(p, now)
		}
	}
}

// judgeRollout looks why a pod has an earlier template, although all is quiet.
func (l *currentLaw) judgeRollout(p *pod, now time.Time) {
	w := p.workload
	reason := cmp.Or(l.waitsFor(p), l.awaitsRestart(p, now))
	if reason != "" {
		l.count("pods excused: rollout pending, " + reason)
		return
	}
	l.violate(now, broken{"current", w.id.String(), "rollout"},
		"pod %s of %s has an earlier template than that of %s (version %d), and nothing keeps it", p.id.name, l.when(p.startedAt),
		l.when(w.last().at), w.last().version)
}

// waitsFor returns what keeps a pod of an earlier template; empty if nothing does.
func (l *currentLaw) waitsFor(p *pod) string {
	reason, partition := pendingOf(p.workload.object)
	if reason != "" && (partition == 0 || p.ordinal() < partition) {
		return reason
	}
	for _, other := range l.pods {
		if other.workload == p.workload && !other.running {
			return "a pod does not run"
		}
	}
	return ""
}

// judgePod judges the contents that a pod was started with.
func (l *currentLaw) judgePod(p *pod, now time.Time) {
	w := p.workload
	l.count("pods judged")
	for _, r := range w.refs {
		h := l.contents.of(w.id.namespace, r)
		content := h.now()
		if l.referentHeld(w, r) {
			l.count("pods excused: custom resource held")
			continue
		}
		if h.at(p.runsSince()) == content || content == absent && !w.triggers[r].deleted {
			continue
		}
		last := h.edits[len(h.edits)-1]
		if l.takenFor(p, r, content) || now.Sub(last.at) < recovery {
			l.count("pods excused: adopted or changed back")
			continue
		}
		how := "modified"
		switch {
		case content == absent:
			how = "deleted"
		case h.at(p.runsSince()) == absent:
			how = "created"
		}
		signature := how
		if p.stamp != w.last() {
			signature += "/undone"
		}
		if w.lostKeySince(p.stamp) {
			signature += keyLost
		}
		l.violate(now, broken{"current", w.id.String(), signature},
			"pod %s, started at %s (version %d), runs with an old content of %s, which was %s at %s (version %d)",
			p.id.name, l.when(p.startedAt), p.started, r, how, l.when(last.at), last.version)
		return
	}
}

// takenFor reports whether the program may take a content for that of a pod: by the stamp that the pod was started with, or by the last
// one, where that came back with a record of a lost key.
func (l *currentLaw) takenFor(p *pod, r ref, content int) bool {
	w := p.workload
	return l.believes(w, p.stamp, r, content) || w.last().foreign && l.believes(w, w.last(), r, content)
}

func (l *currentLaw) sortedPods() []*pod {
	pods := make([]*pod, 0, len(l.pods))
	for _, p := range l.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *pod) int { return strings.Compare(a.id.String(), b.id.String()) })
	return pods
}
