package oracle

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// judgeTemplate judges whether a run has the pod template that its CronJob had when the program read it. Where requests are slow, that is long
// before.
func (l *runsLaw) judgeTemplate(w *workload, c world.Commit) {
	if c.Sent == nil || !l.healthy(w, c.Call.Arrived.Add(-readLongBefore)) {
		return
	}
	l.count("templates of runs judged")
	since := earliest(l.readForRun(w, c.Call), c.Call.Arrived.Add(-readBefore))
	sent := withoutJobLabels(world.Section(c.Sent, world.PodPath(jobsResource)...))
	if !slices.ContainsFunc(l.templatesSince(w, since), func(t world.Object) bool { return sameTemplate(t, sent, l.options.Prefix) }) {
		l.violate(c.At, broken{"jobs", w.id.String(), "run/other-template"},
			"the program ran it at %s with a pod template that it has not had since %s", l.when(c.At), l.when(since))
	}
}

// templatesSince returns the pod templates that a workload has had since a moment, as users see them.
func (l *runsLaw) templatesSince(w *workload, since time.Time) []world.Object {
	var had []world.Object
	for _, s := range slices.Backward(w.stamps) {
		had = append(had, w.templates[s.visible])
		if !s.at.After(since) {
			break
		}
	}
	return had
}

// withoutJobLabels returns a pod template without the labels that the API server adds to that of a Job.
func withoutJobLabels(template world.Object) world.Object {
	bare, metadata := maps.Clone(template), maps.Clone(world.Section(template, "metadata"))
	labels := maps.Clone(world.Labels(template))
	maps.DeleteFunc(labels, func(name string, _ any) bool { return isJobLabel(name) })
	metadata["labels"] = labels
	bare["metadata"] = metadata
	return bare
}
