package chain

import (
	"sync/atomic"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// configuration is what is known of the configuration. It has no lock: that of graphState protects what is not atomic.
type configuration struct {
	// rules say which workloads run with which custom resources; nil until a configuration has been read. They are in force
	// before the graph is.
	rules    atomic.Pointer[referent.Schema]
	rejected atomic.Bool // there is no valid configuration to wait for

	began      time.Time
	configured bool
	// schema is that of the graph.
	schema *referent.Schema
}

// Reject says that there is no valid configuration. It may come later, but nothing waits for it.
func (c *configuration) Reject() { c.rejected.Store(true) }

// Workload finds the custom resources that a workload runs with without naming them; it is an annotation.Finder.
func (c *configuration) Workload(labels map[string]string, owners []reference.Owner) (owned, labelled []reference.Ref, known bool) {
	rules := c.rules.Load()
	if rules == nil {
		return nil, nil, false
	}
	owned, labelled = rules.Workload(labels, owners)
	return owned, labelled, true
}

// key returns that of a custom resource; false where the schema does not have it.
func (c *configuration) key(namespace string, ref reference.Ref) (referent.Key, bool) {
	resource, ok := c.schema.Resource(ref.Kind.GroupResource())
	if !ok {
		return referent.Key{}, false
	}
	return resource.Key(namespace, ref.Name), true
}

// unknownState is the state of the objects of a resource that the schema does not have.
func (c *configuration) unknownState(kind reference.Kind, now time.Time) digest.State {
	switch _, awaited := c.rules.Load().Resource(kind.GroupResource()); {
	case !c.configured && c.rejected.Load():
		return held("the configuration of --config is missing or not valid: its Event and the log say why", c.began)
	case !c.configured:
		return unread("the configuration has not been read yet", c.began)
	case awaited:
		return unread("its configuration is not in force yet", now)
	default:
		return held(c.unknown(kind), time.Time{})
	}
}

// unknown says that the configuration does not have a resource.
func (c *configuration) unknown(kind reference.Kind) string {
	text := "the referents of the configuration have no resource " + reference.Quote(string(kind))
	if known := c.schema.Resources(); len(known) > 0 {
		return text + ": they have " + reference.List(known, reference.MaxNamed)
	}
	return text
}

func held(reason string, since time.Time) digest.State {
	return digest.State{Hold: &digest.Hold{Reason: reason, Since: since}}
}

// unread is held by what this process has not read yet.
func unread(reason string, since time.Time) digest.State {
	return digest.State{Hold: &digest.Hold{Reason: reason, Since: since, NotReadYet: true}}
}
