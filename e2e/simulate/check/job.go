package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// jobs notes each Job with its pods. Those that the program makes for a CronJob have names that are made of its UID: they are
// noted with the CronJob.
func (w *watcher) jobs(f facts, api simulate.Reader, namespace string) {
	pods := map[string][]string{}
	for _, o := range api.List(world.Pods, namespace) {
		if whose, controlled := controller(o); controlled {
			pods[whose.uid] = append(pods[whose.uid], world.Text(o, "status", "phase"))
		}
	}
	runs := map[string][]string{}
	for _, o := range api.List(world.Jobs, namespace) {
		name := nameOf(world.Jobs, o)
		whose, controlled := controller(o)
		if controlled {
			runs[whose.name] = append(runs[whose.name], w.job(runName(o), whose.name, o, pods))
			continue
		}
		f[name] = w.job(name, name, o, pods)
	}
	for name, lines := range runs {
		slices.Sort(lines)
		f[name+" runs"] = "\n      " + strings.Join(lines, "\n      ")
	}
	for _, o := range api.List(world.CronJobs, namespace) {
		f[nameOf(world.CronJobs, o)+" schedule"] = fmt.Sprintf("suspended %s, concurrency %s, active %d",
			value(o, "spec", "suspend"), value(o, "spec", "concurrencyPolicy"), len(world.Objects(o, "status", "active")))
	}
}

// job describes a Job: templates are counted for each workload.
func (w *watcher) job(name, workload string, o world.Object, pods map[string][]string) string {
	meta := world.Section(o, "metadata")
	managed, annotations := split(world.Section(meta, "annotations"))
	labels := maps.Clone(world.Section(meta, "labels"))
	maps.DeleteFunc(labels, func(label string, _ any) bool { return isGenerated(label) })
	phases := slices.Sorted(slices.Values(pods[world.Text(o, "metadata", "uid")]))
	deleted := ""
	if meta["deletionTimestamp"] != nil {
		deleted = ", being deleted"
	}
	return fmt.Sprintf("%s, %s, own managed annotations %v, others %s, own labels %s, generation %s, suspended %s, finished %t%s, pods %v",
		name, w.template(workload, templateOf(world.Jobs, o)), managed, canonical(annotations), canonical(labels),
		value(o, "metadata", "generation"), value(o, "spec", "suspend"), world.Finished(o), deleted, phases)
}

// runName is the name of a Job of a CronJob, if a user has chosen it.
func runName(o world.Object) string {
	if name := world.Text(o, "metadata", "name"); strings.HasPrefix(name, "by-hand-") {
		return name
	}
	return "a run"
}
