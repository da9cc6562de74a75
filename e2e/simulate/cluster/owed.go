package cluster

import "github.com/pod-reloader/pod-reloader/e2e/simulate/world"

// A status that the next pass changes again need not be written: each write costs an event for every client that watches.
// So a controller leaves the counts to the last of several passes that follow each other. Nothing decides by what is left
// out: controllers read the status of others at any time.

// defers reports whether a controller leaves its status to a later pass, because its own next pass or work on its dependents
// is pending. The status is then owed: a pass follows even if that work changes nothing.
func (c *Cluster) defers(key world.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.queue.has(piece{reconcile, key}) && !c.busy(c.index.filed[key].uid) {
		return false
	}
	c.owed[key] = true
	return true
}

// owe makes a controller look again after the next work on its dependents.
func (c *Cluster) owe(key world.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed[key] = true
}

// busy reports whether work on what an object controls is pending. The caller holds mu.
func (c *Cluster) busy(uid string) bool {
	for _, child := range c.index.children[uid] {
		filed := c.index.filed[child]
		if filed.controller != uid {
			continue
		}
		switch child.Resource {
		case world.Pods:
			if c.queue.has(piece{start, child}) {
				return true
			}
		case world.ReplicaSets:
			if c.queue.has(piece{reconcile, child}) || c.busy(filed.uid) {
				return true
			}
		}
	}
	return false
}

// settle makes the nearest controller above an object that owes its status look again. The caller holds mu.
func (c *Cluster) settle(key world.Key) {
	for {
		above, ok := c.index.alive[c.index.filed[key].controller]
		if !ok {
			return
		}
		if c.owed[above] {
			delete(c.owed, above)
			c.queue.add(piece{reconcile, above})
			return
		}
		key = above
	}
}
