package cluster

import (
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Dirty records a stored change: which controllers must look again, which pods may start, what lost its owner.
func (c *Cluster) Dirty(commit world.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if commit.New == nil {
		c.forget(commit.Key)
		return
	}
	c.note(commit.Key, commit.New)
}

func ignored(resource world.Resource) bool {
	return resource.Plural == world.Events.Plural || resource == world.Leases
}

// note marks what an object that was created or changed concerns. The caller holds mu.
func (c *Cluster) note(key world.Key, object world.Object) {
	if ignored(key.Resource) {
		return
	}
	before := c.index.file(key, object)
	after := c.index.filed[key]
	c.noteOwners(before)
	if waitsForCollector(object) {
		c.queue.add(piece{collect, key})
	}
	c.markControllers(before, after)
	if before.uid != after.uid {
		c.noteCreated(key, after)
	}
	switch key.Resource {
	case world.Deployments, world.StatefulSets, world.Rollouts:
		c.queue.add(piece{reconcile, key}) // a new status may let the history be cleaned up
	case world.ReplicaSets, world.DaemonSets, world.Jobs, world.CronJobs:
		// Nothing but a change of the spec or of a dependent gives these controllers work: a write of the status does not.
		if changed(before, after) {
			c.queue.add(piece{reconcile, key})
		}
	case world.Pods:
		c.notePod(key, object)
	case world.ConfigMaps, world.Secrets:
		c.noteConfig(key)
	case world.Namespaces:
		delete(c.gone, key.Name)
		if deleting(object) {
			c.gone[key.Name] = true
			c.queue.add(piece{collect, key})
		}
	}
}

// changed reports whether an object or its spec is new.
func changed(before, after filing) bool {
	return before.uid != after.uid || before.generation != after.generation || after.generation == 0
}

// noteCreated asks the garbage collector to look at an object whose owner does not exist, as after a restore.
func (c *Cluster) noteCreated(key world.Key, filed filing) {
	for _, owner := range filed.owners {
		if _, ok := c.index.alive[owner]; !ok {
			c.queue.add(piece{collect, key})
		}
	}
}

// noteOwners asks the garbage collector to look at the owners that wait for the end of an object. The caller holds mu.
func (c *Cluster) noteOwners(filed filing) {
	for _, uid := range filed.owners {
		if owner, ok := c.index.alive[uid]; ok && c.index.filed[owner].waits {
			c.queue.add(piece{collect, owner})
		}
	}
}

// forget marks what the deletion of an object concerns. The caller holds mu.
func (c *Cluster) forget(key world.Key) {
	if ignored(key.Resource) {
		return
	}
	delete(c.prints, key)
	delete(c.blocked, key)
	delete(c.owed, key)
	for verb := reconcile; verb <= collect; verb++ {
		c.queue.drop(piece{verb, key})
	}
	before := c.index.unfile(key)
	c.markController(before.controller)
	c.noteOwners(before)
	if waiting, ok := c.awaited[key]; ok {
		delete(c.awaited, key)
		c.queue.add(piece{reconcile, waiting})
	}
	children := c.index.children[before.uid]
	if before.uid == "" {
		children = nil
	}
	for _, child := range children {
		c.queue.add(piece{collect, child})
	}
	if key.Resource == world.Namespaces {
		c.gone[key.Name] = true
		c.queue.add(piece{collect, key})
	} else if c.gone[key.Namespace] {
		c.queue.add(piece{collect, world.Key{Resource: world.Namespaces, Name: key.Namespace}})
	}
}

// markControllers makes the controller of an object look again, and the one that it had before.
func (c *Cluster) markControllers(before, after filing) {
	c.markController(after.controller)
	if before.controller != after.controller {
		c.markController(before.controller)
	}
}

// markController makes the controller with this uid look again.
func (c *Cluster) markController(uid string) {
	if uid == "" {
		return
	}
	switch key := c.index.alive[uid]; key.Resource {
	case world.Deployments, world.ReplicaSets, world.StatefulSets, world.DaemonSets, world.Jobs, world.CronJobs, world.Rollouts:
		c.queue.add(piece{reconcile, key})
	}
}
