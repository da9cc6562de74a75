package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// tenants are the namespaces that users act in.
var tenants = []string{"shop", "bank"}

// watcher makes the summaries of one world. It remembers what it saw at earlier steps.
type watcher struct {
	hashes, templates orders
	// since is the step at which a pod was first seen, by UID.
	since map[string]int
	// replicas are those that a ReplicaSet was to have, by UID.
	replicas map[string]int
}

func newWatcher() *watcher {
	return &watcher{hashes: orders{}, templates: orders{}, since: map[string]int{}, replicas: map[string]int{}}
}

// look summarises what is stored after so many steps.
func (w *watcher) look(step int, acted error, api simulate.Reader) facts {
	f := facts{"the act": outcome(acted)}
	for _, namespace := range tenants {
		owned := w.revisions(f, api, namespace)
		for _, r := range []world.Resource{world.Deployments, world.StatefulSets, world.DaemonSets, world.CronJobs} {
			for _, o := range api.List(r, namespace) {
				w.workload(f, r, o)
			}
		}
		w.pods(f, step, api, namespace, owned)
		w.jobs(f, api, namespace)
		events(f, api, namespace)
		configs(f, api, namespace)
	}
	keys(f, api)
	return f
}

func outcome(acted error) string {
	rejected, isRejected := errors.AsType[*act.RejectedError](acted)
	switch {
	case acted == nil:
		return "done"
	case errors.Is(acted, act.ErrSkipped):
		return "skipped"
	case isRejected:
		return fmt.Sprintf("rejected with %d %s", rejected.Status, rejected.Reason)
	}
	return acted.Error()
}

func (w *watcher) workload(f facts, r world.Resource, o world.Object) {
	name := nameOf(r, o)
	meta := world.Section(o, "metadata")
	managed, annotations := split(world.Section(meta, "annotations"))
	f[name+" generation"] = value(meta, "generation")
	f[name+" managed annotations"] = strings.Join(managed, ", ")
	f[name+" annotations"] = canonical(annotations)
	f[name+" labels"] = canonical(world.Section(meta, "labels"))
	f[name+" replicas"] = value(o, "spec", "replicas")
	f[name+" paused"] = value(o, "spec", "paused")
	f[name+" template"] = w.template(name, templateOf(r, o))
}

func nameOf(r world.Resource, o world.Object) string {
	return r.Plural + "/" + world.Text(o, "metadata", "namespace") + "/" + world.Text(o, "metadata", "name")
}

// owner is what controls an object: its UID and its name with the resource.
type owner struct{ uid, name string }

func controller(o world.Object) (owner, bool) {
	reference := world.Controller(o)
	return owner{world.Text(reference, "uid"), strings.ToLower(world.Text(reference, "kind")) + "s/" +
		world.Text(o, "metadata", "namespace") + "/" + world.Text(reference, "name")}, reference != nil
}

// revisions notes the ReplicaSets and ControllerRevisions of each workload, and returns whose each ReplicaSet is.
func (w *watcher) revisions(f facts, api simulate.Reader, namespace string) map[string]owner {
	owned := map[string]owner{}
	for _, r := range []world.Resource{world.ReplicaSets, world.ControllerRevisions} {
		all := api.List(r, namespace)
		slices.SortFunc(all, func(a, b world.Object) int { return cmp.Compare(revision(a), revision(b)) })
		for _, o := range all {
			whose, controlled := controller(o)
			if !controlled {
				f[nameOf(r, o)] = "belongs to nothing"
				continue
			}
			managed, _ := split(world.Section(o, "metadata", "annotations"))
			line := fmt.Sprintf("\n      %d: %s", revision(o), w.template(whose.name, templateOf(r, o)))
			if r == world.ReplicaSets {
				owned[world.Text(o, "metadata", "uid")] = whose
				line += ", replicas " + value(o, "spec", "replicas")
			}
			f[whose.name+" revisions"] += line + fmt.Sprintf(", own managed annotations %v", managed)
		}
	}
	return owned
}

// revision is the number of a ReplicaSet or ControllerRevision.
func revision(o world.Object) int64 {
	number := value(o, "revision")
	if number == "" {
		number = world.Text(o, "metadata", "annotations", "deployment.kubernetes.io/revision")
	}
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}
