// Package workload knows where things are in a workload: which kinds there are, where each keeps its pod template, and
// how to read what matters from a raw object.
//
// The stamp treats all kinds alike: it needs only the path of the pod template, so that a kind that is not compiled in is
// stamped like a Deployment. What a reload does besides depends on properties of the kind (CreateOnly, Schedules, Pausable,
// Restartable). The package is pure: it reads the objects that it is given and changes none of them.
package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind says where a kind of workload has its pod template.
type Kind struct {
	schema.GroupVersionKind
	// Template is the path of the pod template, e.g. spec, template.
	Template []string
	// CreateOnly is set for kinds whose template cannot be changed after creation (Job): it is stamped once, and a reload creates
	// the workload again.
	CreateOnly bool
}

// String returns the text form that ParseKind reads: group/version/Kind=json.path.
func (k Kind) String() string {
	return k.ID() + "=" + strings.Join(k.Template, ".")
}

// ID returns group/version/Kind, or version/Kind for the core group.
func (k Kind) ID() string {
	return ID(k.GroupVersionKind)
}

// ID returns the text form of a group, version and kind: group/version/Kind, or version/Kind for the core group.
func ID(gvk schema.GroupVersionKind) string {
	return strings.TrimPrefix(gvk.Group+"/"+gvk.Version+"/"+gvk.Kind, "/")
}

// Pausable reports whether reloads can pause workloads of the kind for a period: Deployments only, as in Reloader.
func (k Kind) Pausable() bool { return k.GroupKind() == Deployment().GroupKind() }

// Restartable reports whether a field of the spec restarts the pods of workloads of the kind (spec.restartAt): Argo Rollouts.
func (k Kind) Restartable() bool { return k.GroupKind() == Rollout().GroupKind() }

// Schedules reports whether workloads of the kind make Jobs, which can be made at once as well.
func (k Kind) Schedules() bool { return k.GroupKind() == CronJob().GroupKind() }

// isDeploymentConfig reports whether workloads of the kind are those of OpenShift, whose triggers roll out a new template.
func (k Kind) isDeploymentConfig() bool { return k.GroupKind() == DeploymentConfig().GroupKind() }

// NewObject returns an empty object of the kind, into which one is read.
func (k Kind) NewObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	return u
}

// Builtin returns the kinds that are served without configuration.
func Builtin() []Kind {
	return []Kind{DaemonSet(), Deployment(), StatefulSet(), CronJob(), Job()}
}

// DaemonSet returns the kind of DaemonSets.
func DaemonSet() Kind { return v1("apps", "DaemonSet", "spec", "template") }

// Deployment returns the kind of Deployments.
func Deployment() Kind { return v1("apps", "Deployment", "spec", "template") }

// StatefulSet returns the kind of StatefulSets.
func StatefulSet() Kind { return v1("apps", "StatefulSet", "spec", "template") }

// CronJob returns the kind of CronJobs, also where none are followed.
func CronJob() Kind { return v1("batch", "CronJob", "spec", "jobTemplate", "spec", "template") }

// Job returns the kind of Jobs, also where none are followed.
func Job() Kind {
	job := v1("batch", "Job", "spec", "template")
	job.CreateOnly = true
	return job
}

// DeploymentConfig returns the kind of OpenShift's DeploymentConfigs.
func DeploymentConfig() Kind { return v1("apps.openshift.io", "DeploymentConfig", "spec", "template") }

// Rollout returns the kind of Argo Rollouts.
func Rollout() Kind {
	rollout := v1("argoproj.io", "Rollout", "spec", "template")
	rollout.Version = "v1alpha1"
	return rollout
}

func v1(group, name string, template ...string) Kind {
	return Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}, Template: template}
}

// ParseKind reads group/version/Kind=json.path, e.g. apps.kruise.io/v1alpha1/CloneSet=spec.template. The error says
// which parts are wrong.
func ParseKind(s string) (Kind, error) {
	name, path, ok := strings.Cut(s, "=")
	parts := strings.Split(name, "/")
	if !ok || len(parts) != 3 {
		return Kind{}, fmt.Errorf("workload kind %q: want group/version/Kind=json.path, e.g. apps.kruise.io/v1alpha1/CloneSet=spec.template", s)
	}
	kind, faults := NewKind(schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}, path)
	if len(faults) > 0 {
		reasons := make([]string, 0, len(faults))
		for _, f := range faults {
			reasons = append(reasons, f.Reason)
		}
		return Kind{}, fmt.Errorf("workload kind %q: %s", s, strings.Join(reasons, "; "))
	}
	return kind, nil
}

// Kinds is a set of workload kinds, looked up by group, version and kind. It is immutable.
type Kinds struct {
	byGVK map[schema.GroupVersionKind]Kind
}

// NewKinds returns the set of the given kinds; a later one replaces an earlier one of the same group, version and kind.
func NewKinds(kinds ...Kind) Kinds {
	byGVK := make(map[schema.GroupVersionKind]Kind, len(kinds))
	for _, k := range kinds {
		byGVK[k.GroupVersionKind] = k
	}
	return Kinds{byGVK: byGVK}
}

// Get returns the kind of a group, version and kind.
func (s Kinds) Get(gvk schema.GroupVersionKind) (Kind, bool) {
	k, ok := s.byGVK[gvk]
	return k, ok
}

// Override returns the set with further kinds in it. One of the same group and name takes the place of the one in the
// set, whatever their versions: the API server shows the same objects in each version.
func (s Kinds) Override(kinds ...Kind) Kinds {
	all := slices.DeleteFunc(s.All(), func(k Kind) bool {
		return slices.ContainsFunc(kinds, func(other Kind) bool { return k.GroupKind() == other.GroupKind() })
	})
	return NewKinds(append(all, kinds...)...)
}

// All returns the kinds in a fixed order.
func (s Kinds) All() []Kind {
	all := make([]Kind, 0, len(s.byGVK))
	for _, k := range s.byGVK {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Kind) int { return cmp.Compare(a.ID(), b.ID()) })
	return all
}

// Find returns the kinds that a user may mean by a name as kubectl takes it: the kind in any case, its plural, one of the
// built-in short names, or kind.group.
func (s Kinds) Find(name string) []Kind {
	name, group, hasGroup := strings.Cut(strings.ToLower(name), ".")
	if long, ok := shortNames[name]; ok {
		name = long
	}
	var found []Kind
	for _, k := range s.All() {
		lower := strings.ToLower(k.Kind)
		if (name == lower || name == lower+"s") && (!hasGroup || group == k.Group) {
			found = append(found, k)
		}
	}
	return found
}

// shortNames are those that kubectl knows for the built-in kinds.
var shortNames = map[string]string{"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob"}
