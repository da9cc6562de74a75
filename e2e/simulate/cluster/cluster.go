package cluster

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Store is where the objects are: the model of the API server.
//
// Objects that it returns are shared and never changed. An object given to Store or StoreStatus has the resourceVersion
// that was read; a store that serves other writers at the same time must reject an older version with an error, and the
// piece of work is then pending again. Store gives a created object its uid, creationTimestamp and generation.
type Store interface {
	Get(key world.Key) (world.Object, bool)
	// List returns the objects of a namespace, of all for "", sorted by namespace and name.
	List(resource world.Resource, namespace string) []world.Object
	// Store creates or replaces an object, without admission. The generation rises only if the spec changes.
	Store(key world.Key, object world.Object) (world.Object, error)
	// StoreStatus replaces the status and metadata.annotations.
	StoreStatus(key world.Key, object world.Object) (world.Object, error)
	Remove(key world.Key)
}

// Options change the model. The zero value is a cluster with a kubelet.
type Options struct {
	// StartBlocked starts pods although an object that they require is missing, as KWOK does. A broken image still does not start.
	StartBlocked bool
	// Refused is called with an object that the store refuses as invalid; nil does nothing. A controller works on it again
	// when something that it depends on changes; the few attempts that real ones make before that are left out.
	Refused func(key world.Key, object world.Object)
}

// nodes are the nodes of the cluster.
var nodes = [...]string{"node-a", "node-b"}

// Cluster is the model. Dirty may be called at any time, also while Work runs; the other methods must not be called at the
// same time as each other.
type Cluster struct {
	store   Store
	options Options

	// suffixes counts the names that were made up for each owner; only Work uses it.
	suffixes map[string]int
	// failed means that a write of the current pass was rejected, refused that it was invalid; only Work uses them.
	failed, refused bool

	mu     sync.Mutex
	queue  queue
	index  index
	prints map[world.Key]form
	// blocked has the pods that wait for a configuration object or an image.
	blocked map[world.Key]blockage
	// awaited has the controllers that want to create an object whose name is taken.
	awaited map[world.Key]world.Key
	// gone has the namespaces that were deleted and not created again.
	gone map[string]bool
	// owed has the controllers that left their status, or the rest of a restart, for a later pass.
	owed map[world.Key]bool
}

// New returns a model on the store. What is stored already is taken note of.
func New(store Store, options Options) *Cluster {
	c := &Cluster{
		store: store, options: options,
		suffixes: map[string]int{},
		queue:    newQueue(),
		index:    newIndex(),
		prints:   map[world.Key]form{},
		blocked:  map[world.Key]blockage{},
		awaited:  map[world.Key]world.Key{},
		gone:     map[string]bool{},
		owed:     map[world.Key]bool{},
	}
	stored := map[world.Key]world.Object{}
	for _, resource := range world.Resources() {
		for _, object := range store.List(resource, "") {
			key := world.Key{Resource: resource, Namespace: world.Text(object, "metadata", "namespace"), Name: nameOf(object)}
			stored[key] = object
			c.index.alive[uidOf(object)] = key
		}
	}
	for key, object := range stored { // the order reaches nothing: what is noted are sorted sets
		c.note(key, object)
	}
	return c
}

// Pending returns the names of the pieces of work that can be done now, sorted: "deployments/shop/cart" is a pass of a
// controller, "start pods/shop/cart-5b8-x1" is the kubelet's, "collect replicasets/shop/cart-5b8" is the garbage collector's.
func (c *Cluster) Pending() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.due(time.Now())
}

// Next returns when the next piece of work becomes due by time alone (minReadySeconds, progressDeadlineSeconds, restartAt).
func (c *Cluster) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.next()
}

// Work does one pass of a pending piece of work. A name that is not pending is ignored.
func (c *Cluster) Work(name string) {
	c.mu.Lock()
	p, ok := c.queue.take(name, time.Now())
	delete(c.owed, p.key)
	gone := c.gone[p.key.Namespace]
	c.mu.Unlock()
	if !ok {
		return
	}
	c.failed, c.refused = false, false
	switch {
	case p.verb == collect:
		c.collect(p.key)
	case gone:
	case p.verb == start:
		c.start(p.key)
	default:
		c.reconcile(p.key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed {
		c.queue.add(p)
	}
	c.settle(p.key)
}

func (c *Cluster) reconcile(key world.Key) {
	object, ok := c.store.Get(key)
	if !ok || deleting(object) {
		return
	}
	switch key.Resource {
	case world.Deployments, world.Rollouts:
		c.syncDeployment(key, object)
	case world.ReplicaSets:
		c.syncReplicaSet(key, object)
	case world.StatefulSets:
		c.syncStatefulSet(key, object)
	case world.DaemonSets:
		c.syncDaemonSet(key, object)
	case world.Jobs:
		c.syncJob(key, object)
	case world.CronJobs:
		c.syncCronJob(key, object)
	}
}

// put stores an object and returns what is stored, or nil if that was rejected.
func (c *Cluster) put(key world.Key, object world.Object) world.Object {
	stored, err := c.store.Store(key, object)
	return c.written(key, object, stored, err)
}

func (c *Cluster) putStatus(key world.Key, object world.Object) {
	stored, err := c.store.StoreStatus(key, object)
	c.written(key, object, stored, err)
}

func (c *Cluster) remove(key world.Key) {
	c.store.Remove(key)
	c.reread(key)
}

func (c *Cluster) written(key world.Key, wanted, stored world.Object, err error) world.Object {
	switch {
	case apierrors.IsInvalid(err):
		c.refused = true
		if c.options.Refused != nil {
			c.options.Refused(key, wanted)
		}
		return nil
	case err != nil:
		c.failed = true
		return nil
	}
	c.reread(key)
	return stored
}

// reread records a write of its own, so that the next pass does not depend on when Dirty is called.
func (c *Cluster) reread(key world.Key) {
	object, ok := c.store.Get(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.note(key, object)
	} else {
		c.forget(key)
	}
}

// await makes the work of a controller pending when an object is gone whose name it needs.
func (c *Cluster) await(taken, controller world.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited[taken] = controller
}

// wake makes the piece of work of a controller pending again at a time.
func (c *Cluster) wake(key world.Key, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue.wake(piece{reconcile, key}, at)
}

func (c *Cluster) unwake(key world.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.queue.later, piece{reconcile, key}.name())
}
