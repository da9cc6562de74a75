package oracle

import (
	"maps"
	"slices"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// After a restore of the API server's storage, contents change back like by any other write. What was seen of workloads and Jobs since the
// snapshot is forgotten: the program may know nothing of it any more, and must judge what it recorded until then. Versions never go back
// (world.Commit.Restored). The time is excused as with every fault.

// rewind forgets what was seen of a workload after the state that is restored.
func (l *ledger) rewind(c world.Commit) {
	w := l.byUID[uidOf(c.New)]
	if w == nil {
		return
	}
	if other := l.workloads[w.id]; other != nil && other != w {
		other.gone, other.eligible = true, false
	}
	l.workloads[w.id], w.gone = w, false
	w.stamps = slices.DeleteFunc(slices.Clone(w.stamps), func(s *stamp) bool { return s.version > c.Restored })
	w.adoptions = slices.DeleteFunc(w.adoptions, func(a *adoption) bool { return a.version > c.Restored })
	w.reopen(c)
	w.due = due{}
	w.requests.allowed++
	l.excuseUnreported(w)
}

// reopen begins the periods again that had not ended: what the program has found meanwhile is lost.
func (w *workload) reopen(c world.Commit) {
	var all []*period
	for _, s := range w.stamps {
		all = append(all, s.periods...)
		for _, carried := range s.carried {
			all = append(all, carried...)
		}
	}
	for _, a := range w.adoptions {
		all = append(all, a.period)
	}
	w.open = nil
	for _, p := range all {
		if (p.open || p.to > c.Restored) && !slices.Contains(w.open, p) {
			p.open, p.opened = true, c.At
			w.open = append(w.open, p)
		}
	}
}

// believedLabels returns the labels that the program may take for those of a namespace after a change of it. It does not detect a restore
// for the labels of namespaces, which is a documented limit: what the restore has changed, and what is written until its watch has reached
// its version again, may never come.
func (l *ledger) believedLabels(c world.Commit) []map[string]string {
	before := l.namespaces[c.Key.Name]
	lately := slices.ContainsFunc(l.faults.spans, func(s *span) bool { return s.kind == "restored" && (s.open || c.At.Sub(s.to) < recovery) })
	switch {
	case c.Restored == 0 && !lately:
		return nil
	case before == nil:
		return []map[string]string{nil}
	}
	return append(slices.Clone(before.believed), before.labels)
}

// labelsUnclear reports whether a workload is in scope by the labels that its namespace has, and not by those that the program may know, or
// the other way round.
func (l *ledger) labelsUnclear(w *workload) bool {
	namespace := l.namespaces[w.id.namespace]
	inScope := func(labels map[string]string) bool {
		return l.scope.inScope(w.id.namespace, labels, texts(world.Labels(w.object)))
	}
	return namespace != nil && slices.ContainsFunc(namespace.believed, func(labels map[string]string) bool {
		return inScope(labels) != inScope(namespace.labels)
	})
}

// rewindJob forgets what was seen of a Job after the state that is restored.
func (l *jobLog) rewindJob(j *job, c world.Commit) {
	l.jobs[j.workload.id] = j
	if j.finished > c.Restored {
		j.finished = 0
	}
	j.deleted, j.reported, j.acted = j.deleted && deleting(c.New), false, c.At
	j.finish(c)
	j.workload.object = c.New
}

// restoreManifest records the manifest of a Job that a restore brings back, or takes away.
func (l *jobsLaw) restoreManifest(c world.Commit) {
	uid, is := l.manifestOf(c.Key)
	switch {
	case !is:
	case c.New != nil:
		l.storeManifest(uid, c)
		l.manifests[uid] = versionTime{c.At, c.Version}
	default:
		l.removeManifest(uid, c)
	}
}

// restored forgets the Jobs that exist again, and that others were created again.
func (l *jobsLaw) restored(int64) {
	maps.DeleteFunc(l.lost, func(uid string, lost *lostJob) bool {
		now := l.jobs[lost.job.workload.id]
		lost.restored = lost.restored && now != nil
		return now != nil && now.workload.uid == uid
	})
}

// restored forgets the runs that are lost, and what followed from them.
func (l *runsLaw) restored(back int64) {
	for owner, runs := range l.runs {
		l.runs[owner] = slices.DeleteFunc(runs, func(r run) bool { return r.version > back })
	}
	clear(l.owed)
	clear(l.withdrawn)
}

// restored forgets what was read: an object may have a version again that it had before.
func (l *readsLaw) restored(int64) { clear(l.known) }
