package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pod-reloader/pod-reloader/e2e/simulate"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// configs notes the content and metadata of the configuration objects of a namespace.
func configs(f facts, api simulate.Reader, namespace string) {
	for _, r := range []world.Resource{world.ConfigMaps, world.Secrets} {
		for _, o := range api.List(r, namespace) {
			if world.Text(o, "metadata", "name") == "kube-root-ca.crt" {
				continue // the controller manager puts it into every namespace; the model has no reason to
			}
			f[nameOf(r, o)] = canonical([]any{
				o["data"], o["binaryData"], o["type"], world.Section(o, "metadata", "labels"), world.Section(o, "metadata", "annotations"),
			})
		}
	}
}

// keys notes the names of the digest keys: the keys themselves are random.
func keys(f facts, api simulate.Reader) {
	for _, o := range api.List(world.Secrets, act.System) {
		if world.Text(o, "metadata", "name") == act.KeySecret {
			f["digest keys"] = fmt.Sprint(slices.Sorted(maps.Keys(world.Section(o, "data"))))
		}
	}
}

// events notes how many reloads of each workload were reported, and what else the program says of it: how often it says
// that is a matter of time. Whether it sees that an object is missing that is deleted and created again at once depends on
// the order of requests.
func events(f facts, api simulate.Reader, namespace string) {
	reloads, others := map[string]int{}, map[string]bool{}
	for _, o := range api.List(world.Events, namespace) {
		if o["reportingController"] != "pod-reloader" || o["reason"] == "ConfigMissing" {
			continue
		}
		subject := strings.ToLower(world.Text(o, "regarding", "kind")) + "s/" + namespace + "/" + world.Text(o, "regarding", "name")
		if o["reason"] == "Reloaded" {
			reloads[subject]++
		} else {
			others[subject+" "+world.Text(o, "reason")+" Event"] = true
		}
	}
	for subject, n := range reloads {
		f[subject+" Reloaded Events"] = fmt.Sprint(n)
	}
	for subject := range others {
		f[subject] = "there"
	}
}
