package world

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is a decoded JSON object. Stored objects are shared and never changed: copy before writing.
type Object = map[string]any

// Resource is one kind of object that the API serves.
type Resource struct {
	Group, Version, Plural, Kind string
	// Namespaced is false for resources of the cluster.
	Namespaced bool
	// Status means that there is a status subresource.
	Status bool
}

// APIVersion returns e.g. "apps/v1", or "v1" for the core group.
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// The resources that the model serves.
var (
	ConfigMaps          = Resource{"", "v1", "configmaps", "ConfigMap", true, false}
	Secrets             = Resource{"", "v1", "secrets", "Secret", true, false}
	Pods                = Resource{"", "v1", "pods", "Pod", true, true}
	Namespaces          = Resource{"", "v1", "namespaces", "Namespace", false, true}
	CoreEvents          = Resource{"", "v1", "events", "Event", true, false}
	Events              = Resource{"events.k8s.io", "v1", "events", "Event", true, false}
	Leases              = Resource{"coordination.k8s.io", "v1", "leases", "Lease", true, false}
	Deployments         = Resource{"apps", "v1", "deployments", "Deployment", true, true}
	StatefulSets        = Resource{"apps", "v1", "statefulsets", "StatefulSet", true, true}
	DaemonSets          = Resource{"apps", "v1", "daemonsets", "DaemonSet", true, true}
	ReplicaSets         = Resource{"apps", "v1", "replicasets", "ReplicaSet", true, true}
	ControllerRevisions = Resource{"apps", "v1", "controllerrevisions", "ControllerRevision", true, false}
	CronJobs            = Resource{"batch", "v1", "cronjobs", "CronJob", true, true}
	Jobs                = Resource{"batch", "v1", "jobs", "Job", true, true}
	// Rollouts are a custom resource: a kind of workload that the program knows only from its configuration.
	Rollouts = Resource{"argoproj.io", "v1alpha1", "rollouts", "Rollout", true, true}
	// Filters and Proxies are custom resources of an operator. A proxy refers to filters, a filter to a Secret and a ConfigMap.
	Filters = Resource{"proxy.example.com", "v1", "filters", "Filter", true, true}
	Proxies = Resource{"proxy.example.com", "v1", "proxies", "Proxy", true, true}
)

// Resources returns those that each model serves.
func Resources() []Resource {
	return []Resource{
		ConfigMaps, Secrets, Pods, Namespaces, CoreEvents, Events, Leases, Deployments, StatefulSets, DaemonSets, ReplicaSets,
		ControllerRevisions, CronJobs, Jobs, Rollouts,
	}
}

// GraphResources returns the custom resources that are served only where a history has a graph of them.
func GraphResources() []Resource { return []Resource{Filters, Proxies} }

// Key names one object.
type Key struct {
	Resource        Resource
	Namespace, Name string
}

// String returns e.g. "deployments/shop/cart".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Resource.Plural + "/" + k.Name
	}
	return k.Resource.Plural + "/" + k.Namespace + "/" + k.Name
}

// Meta gives access to an object's metadata. The object must have been copied if it is changed.
func Meta(o Object) *unstructured.Unstructured { return &unstructured.Unstructured{Object: o} }

// Call is one request to the API server.
type Call struct {
	// Number counts the calls in the order of their arrival, from 1.
	Number int64
	// Client says who asks: the name that the network gives the other side, such as "replica-0" or "user".
	Client string
	// Verb is get, list, watch, create, update, patch or delete.
	Verb        string
	Key         Key // the name is empty for list, watch and a create
	Subresource string
	// Path is the request's path with its query, for requests that are none of a resource (discovery) too.
	Path   string
	DryRun bool
	// Partial means that only the metadata of objects is asked for.
	Partial bool
	// Body is what was sent; do not change it.
	Body []byte
	// ContentType says what Body is.
	ContentType string
	// Arrived is when the call came, at what stored version.
	Arrived        time.Time
	ArrivedVersion int64
}

// Write reports whether the call changes something if it succeeds.
func (c *Call) Write() bool {
	switch c.Verb {
	case "create", "update", "patch", "delete":
		return !c.DryRun
	}
	return false
}

// Commit is one stored change. A write that changes nothing stores nothing.
type Commit struct {
	At time.Time
	// Version is the resourceVersion that it gave the object.
	Version int64
	Key     Key
	// Call is the request that made the change; nil for what the model's own controllers did.
	Call *Call
	// Old is nil for a creation, New for a deletion.
	Old, New Object
	// Sent is what the client wanted stored, before any webhook changed it; nil for a deletion.
	Sent Object
	// Restored is the version of the state that was restored from a snapshot, with all changes by which that is done; 0 for all others.
	Restored int64
}

// Reply is the answer to a request.
type Reply struct {
	Call   *Call
	At     time.Time
	Status int
	// Failure is set unless the request succeeded.
	Failure *metav1.Status
	// Called names the admission webhooks that were called, in this order: one that is called again is named again.
	Called []string
	// Webhook names the admission webhook that rejected the request, or that failed and whose policy is Fail.
	Webhook string
	// Warnings were sent with the answer.
	Warnings []string
	// Lost means that the client does not get the answer: the connection broke.
	Lost bool
}
