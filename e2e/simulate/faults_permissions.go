package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/history"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

const (
	// withdrawPermissions is the fault that takes permissions to read a resource away.
	withdrawPermissions = "withdraw-permissions"
	// withdrawWrites is the fault that takes a permission to write away.
	withdrawWrites = "withdraw-write-permissions"
	// writesDenied is the oracle's word for permissions to write that are withdrawn.
	writesDenied = "writes-denied"
	// longBlind is longer than the program may take to report that it cannot watch something, or write.
	longBlind = "8m"
)

// writePermissions are the permissions to write that the program needs: each is withdrawn alone.
func writePermissions() []struct{ resource, verb string } {
	return []struct{ resource, verb string }{
		{world.Deployments.Plural, "patch"},
		{world.Deployments.Plural, "patch"},
		{world.StatefulSets.Plural, "patch"},
		{world.DaemonSets.Plural, "patch"},
		{world.CronJobs.Plural, "patch"},
		{world.Events.Plural, "create"},
		{world.Leases.Plural, "update"},
	}
}

// deniesWrites reports whether a fault takes permissions to write away, and none to read.
func deniesWrites(step history.Step) bool {
	verbs := step.With["verbs"]
	return verbs != "" && !slices.ContainsFunc(splitVerbs(verbs), func(verb string) bool { return slices.Contains([]string{"get", "list", "watch"}, verb) })
}

// writesWithoutPermission is a change while the permission to patch the workload is withdrawn: for so long that it must be reported, or
// given back when the next attempt may be far.
func writesWithoutPermission(r *rand.Rand) situation {
	p := anyTracked(r)
	denied := history.Step{
		Do: withdrawWrites, On: p.resource(), Wait: history.Duration(betweenSituations),
		With: map[string]string{"for": pick(r, longBlind, longBlind, "5m"), "verbs": "patch"},
	}
	return situation{workload: p.workload, rest: untilPrompt, steps: []history.Step{denied, p.edit("denied-1", 10*time.Second)}}
}

// deniedUnderChange is an object that changes again and again, each time for longer than the settle time, while the permission to patch the
// workload is withdrawn: no change leads to the next attempt before its time.
func deniedUnderChange(r *rand.Rand) situation {
	p := anyTracked(r)
	s := hammered(p, "25", "1200ms")
	s.steps = append([]history.Step{{
		Do: withdrawWrites, On: p.resource(), Wait: history.Duration(betweenSituations), With: map[string]string{"for": "2m", "verbs": "patch"},
	}}, s.steps...)
	return s
}

// permissionsFaults are about permissions that are withdrawn and given back.
func permissionsFaults() []faultKind {
	return []faultKind{
		{
			name: withdrawPermissions, kind: "permissions", weight: 3, words: "the permissions to read %[1]s are withdrawn for %[2]s",
			draw: func(r *rand.Rand) history.Step {
				return history.Step{On: pick(r, "configmaps", "secrets", "deployments"), With: map[string]string{
					"for": pick(r, "10s", "1m", "8m"), "verbs": pick(r, "list,watch", "get,list,watch", "get"),
				}}
			},
			scoped: true, begin: withdraw,
		},
		{
			name: withdrawWrites, kind: writesDenied, weight: 4, scoped: true, words: "the permission to %[3]s %[1]s is withdrawn for %[2]s",
			draw: func(r *rand.Rand) history.Step {
				permission := writePermissions()[r.IntN(len(writePermissions()))]
				return history.Step{On: permission.resource, With: map[string]string{"for": pick(r, "10s", "1m", "5m", longBlind), "verbs": permission.verb}}
			},
			begin: withdraw,
		},
		{
			name: "withdraw-graph-permissions", kind: "permissions", weightGraph: 4,
			words: "the permissions to read ConfigMaps, Secrets and custom resources are withdrawn for %[2]s",
			draw: func(r *rand.Rand) history.Step {
				return history.Step{With: map[string]string{"for": pick(r, "10s", "1m", "1m", "8m")}}
			},
			begin: withdrawAll,
		},
	}
}

// withdrawn returns the answer to a request for which the permission is withdrawn; nil if it is not.
func (f *faults) withdrawn(call *world.Call) *metav1.Status {
	for _, r := range f.rules {
		if r.permission && r.matches(call) {
			return forbidden(call)
		}
	}
	return nil
}

// forbidden is what the authorizer of the API server answers to a request without the permission.
func forbidden(call *world.Call) *metav1.Status {
	resource, where := call.Key.Resource, "at the cluster scope"
	if call.Key.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", call.Key.Namespace)
	}
	err := fmt.Errorf("User %q cannot %s resource %q in API group %q %s", call.Client, call.Verb, resource.Plural, resource.Group, where) //nolint:staticcheck // as kube-apiserver writes it
	status := apierrors.NewForbidden(schema.GroupResource{Group: resource.Group, Resource: resource.Plural}, call.Key.Name, err).ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

// withdraw takes permissions away; the API server ends the watches that it does not allow any more.
func withdraw(s *simulation, step history.Step) func() {
	r := &rule{
		percent: 100, resource: step.On, verbs: splitVerbs(step.With["verbs"]), permission: true,
		fate: func(_ *simulation, call *world.Call) apiserver.Fate { return apiserver.Fate{Refuse: forbidden(call)} },
	}
	s.faults.rules = append(s.faults.rules, r)
	if slices.Contains(r.verbs, "watch") {
		s.eachWatch(step.On, func(w *apiserver.Watch) { w.Break() })
	}
	return func() { s.faults.remove(r) }
}

// withdrawAll takes the permissions away to all that the configuration of a workload can be. They come back in one moment.
func withdrawAll(s *simulation, _ history.Step) func() {
	var ends []func()
	for _, resource := range []world.Resource{world.ConfigMaps, world.Secrets, world.Filters, world.Proxies} {
		ends = append(ends, withdraw(s, history.Step{On: resource.Plural, With: map[string]string{"verbs": "get,list,watch"}}))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
