package chain

import (
	"errors"
	"maps"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// State returns the state of a custom resource that a workload of a namespace tracks. While it is held, or missing, the state
// has a Hold and no Entries. The handlers are called when it changes.
func (c *Chain) State(namespace string, ref reference.Ref) digest.State {
	state, key, unseen := c.state(namespace, ref)
	if unseen {
		c.recordHolds([]referent.Change{{Key: key, Held: true}})
		c.reportLate([]referent.Key{key})
	}
	return state
}

// state is State for a question of which nothing is kept: anyone can ask the webhook about any name.
func (c *Chain) state(namespace string, ref reference.Ref) (state digest.State, key referent.Key, unseen bool) {
	c.answers.RLock()
	state, key, unseen = c.stateLocked(namespace, ref)
	c.answers.RUnlock()
	if state.Hold == nil {
		state.Steps = c.steps(key)
	}
	return state, key, unseen
}

// stateLocked returns the node that was asked for, too, and whether it is held and in no graph. The key is empty where the
// configuration does not have it.
func (c *Chain) stateLocked(namespace string, ref reference.Ref) (state digest.State, key referent.Key, unseen bool) {
	resource, ok := c.schema.Resource(ref.Kind.GroupResource())
	switch {
	case !c.configured && c.rejected.Load():
		return held("the configuration of --config is missing or not valid: its Event and the log say why", c.began), referent.Key{}, false
	case !c.configured:
		return unread("the configuration has not been read yet", c.began), referent.Key{}, false
	case !ok && c.awaits(ref.Kind):
		return unread("its configuration is not in force yet", c.options.Now()), referent.Key{}, false
	case !ok:
		return held(c.unknown(ref.Kind), time.Time{}), referent.Key{}, false
	}
	key = resource.Key(namespace, ref.Name)
	if c.graph == nil {
		return unread("no digest key is loaded yet", c.options.Now()), key, false
	}
	state, hold := c.graph.State(key)
	if hold == nil {
		return state, key, false
	}
	since, recorded := c.held[key]
	if !recorded {
		since = c.options.Now()
	}
	return c.heldBy(hold, key, since), key, !recorded
}

func held(reason string, since time.Time) digest.State {
	return digest.State{Hold: &digest.Hold{Reason: reason, Since: since}}
}

// unread is held by what this process has not read yet.
func unread(reason string, since time.Time) digest.State {
	return digest.State{Hold: &digest.Hold{Reason: reason, Since: since, Unread: true}}
}

// heldBy is the state of a node that the graph holds. answers must be locked.
func (c *Chain) heldBy(hold *referent.Hold, key referent.Key, since time.Time) digest.State {
	if hold.Reason == referent.Unsynced {
		return unread(describe(hold, key), since)
	}
	state := held(describe(hold, key), since)
	state.Hold.Refused = c.refused.at(hold)
	return state
}

// describe says why a node is held, and which node below it is the cause.
func describe(hold *referent.Hold, key referent.Key) string {
	if hold.Node == key {
		if hold.Detail == "" {
			return string(hold.Reason)
		}
		return string(hold.Reason) + ": " + hold.Detail
	}
	text := hold.Node.In(key.Namespace) + " is " + string(hold.Reason)
	if hold.Detail != "" {
		text += ": " + hold.Detail
	}
	return text
}

// Check says why the objects of a resource cannot be tracked; nil if they can, and before the configuration has been read.
func (c *Chain) Check(kind reference.Kind) error {
	c.answers.RLock()
	defer c.answers.RUnlock()
	if _, ok := c.schema.Resource(kind.GroupResource()); ok || !c.configured {
		return nil
	}
	return errors.New(c.unknown(kind))
}

// awaits reports whether a resource is in the configuration, and not in the graph yet.
func (c *Chain) awaits(kind reference.Kind) bool {
	rules := c.rules.Load()
	if rules == nil {
		return false
	}
	_, ok := rules.Resource(kind.GroupResource())
	return ok
}

// unknown says that the configuration does not have a resource.
func (c *Chain) unknown(kind reference.Kind) string {
	text := "the referents of the configuration have no resource " + reference.Quote(string(kind))
	if known := c.schema.Resources(); len(known) > 0 {
		return text + ": they have " + reference.List(known, 8)
	}
	return text
}

// recordHolds records since when nodes are held.
func (c *Chain) recordHolds(changes []referent.Change) {
	c.answers.Lock()
	defer c.answers.Unlock()
	if c.held == nil {
		return // the configuration has changed meanwhile
	}
	c.pruneHolds()
	for _, change := range changes {
		if _, was := c.held[change.Key]; !change.Held {
			delete(c.held, change.Key)
			c.step(change)
		} else if !was {
			c.held[change.Key] = c.options.Now()
		}
	}
}

const (
	// spare is how many objects that are in no graph keep their entries, beside as many as there are in it.
	spare = 1_000
	// keep is how long they keep them at least: an object that comes and goes meanwhile must not prevent the report of a hold. It is
	// also the least time between two prunings.
	keep = time.Minute
)

// pruneHolds drops the entries of objects that are in no graph, when most entries are of such objects. They were deleted, or never existed.
func (c *Chain) pruneHolds() {
	now := c.options.Now()
	if c.graph == nil || now.Sub(c.prunedAt) < keep {
		return
	}
	most := 2*c.graph.Len() + spare
	if max(len(c.held), len(c.refused), len(c.tracked)) < most {
		return
	}
	c.prunedAt = now
	if len(c.held) >= most {
		maps.DeleteFunc(c.held, func(key referent.Key, since time.Time) bool { return !c.graph.Has(key) && now.Sub(since) >= keep })
	}
	if len(c.refused) >= most {
		maps.DeleteFunc(c.refused, func(key referent.Key, _ time.Time) bool { return key.Name != "" && !c.graph.Has(key) })
	}
	if len(c.tracked) >= most {
		maps.DeleteFunc(c.tracked, func(key referent.Key, _ steps) bool { return !c.graph.Has(key) })
	}
}

// report calls the handlers for each custom resource that has changed, and once more for those that are still held when that
// is to be reported.
func (c *Chain) report(changes []referent.Change) {
	var late []referent.Key
	for _, change := range changes {
		if change.Held {
			late = append(late, change.Key)
		}
		c.notifyHandlers(change.Key)
	}
	c.reportLate(late)
}

func (c *Chain) reportLate(late []referent.Key) {
	if len(late) == 0 {
		return
	}
	time.AfterFunc(digest.ReportHoldAfter, func() {
		for _, key := range late {
			c.answers.RLock()
			_, still := c.held[key]
			c.answers.RUnlock()
			if still {
				c.notifyHandlers(key)
			}
		}
	})
}

// notifyHandlers calls the handlers for one custom resource.
func (c *Chain) notifyHandlers(key referent.Key) {
	if _, config := key.Ref(); config || key.Group == "" {
		return
	}
	ref := reference.Ref{Kind: reference.CustomKind(key.GroupResource()), Name: key.Name}
	for _, handler := range c.handlers {
		handler(configstate.Event{Namespace: key.Namespace, Ref: ref, Type: configstate.Modified, Received: c.options.Now()})
	}
}
