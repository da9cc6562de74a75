package chain

import (
	"context"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// pending is what has gathered since the last evaluation.
type pending struct {
	// gathered: it is not only what has arrived.
	gathered bool
	// definitions are the resources of another configuration, and schema what they are compiled to; nil where there is none.
	definitions []referent.Definition
	schema      *referent.Schema
	rekeyed     bool
	// changes are in the order in which they came.
	changes []change
	// config are config objects to be read again.
	config map[configKey]struct{}
	// refused are to be asked for again.
	refused []referent.Key
	// restarts are the sources to be replaced whose restart was put off, incomplete those that could keep references now that they have
	// left out.
	restarts, incomplete []*source
	// found are custom resources as a live read has found them, since their watches may be behind.
	found []liveObject
	// batches of reads have ended; what failed in retries can be read again.
	batches, retries []batch
	// leads ends when this process leads no more.
	leads context.Context // it is handed to the goroutine that owns the graph
	// keysRead is the end of a read of the keys; nil where none has ended. keysReadable: they may be read again.
	keysRead     *keysRead
	keysReadable bool
	// published are batches of writes that have ended, written the writes of them, paced and unpublished those to be repeated. removed
	// are objects that have come without the correct annotation some time ago.
	published            []batchEnd
	written              []written
	paced                []referent.Key
	unpublished, removed []again
}

// again are objects to be looked at once more, and when that was due. Where it is due at another time meanwhile, this one has no effect:
// so each object has one timer at most that counts.
type again struct {
	keys []referent.Key
	due  time.Time
}

// configKey names a config object.
type configKey struct {
	namespace string
	ref       reference.Ref
}

func (p *pending) changed(namespace string, ref reference.Ref) {
	if p.config == nil {
		p.config = map[configKey]struct{}{}
	}
	p.config[configKey{namespace, ref}] = struct{}{}
}

// and adds what has gathered to what has arrived.
func (p pending) and(gathered pending) pending {
	gathered.gathered = true
	gathered.changes = append(p.changes, gathered.changes...)
	gathered.batches = append(p.batches, gathered.batches...)
	gathered.published = append(p.published, gathered.published...)
	gathered.written = append(p.written, gathered.written...)
	gathered.keysRead = p.keysRead
	return gathered
}

// change is something new for a graph. There is none while there is no digest key; what was delivered until then, a new graph
// is given.
type change interface {
	apply(graph *referent.Graph, refused refusals)
}

// objectChange is an object that has come, changed or gone (nil).
type objectChange struct {
	source *source
	key    referent.Key
	object *referent.Object
}

func (o objectChange) apply(graph *referent.Graph, _ refusals) {
	switch {
	case graph == nil, o.source.stopped():
	case o.object == nil:
		delete(o.source.known, o.key)
		graph.Delete(o.key)
	default:
		o.source.known[o.key] = struct{}{}
		graph.Put(o.object)
	}
}

// contentChange is a config object that was read, or why it may not be, and when that was refused; zero where it was not asked for. Or it
// is why it cannot be read, and whether that lasts.
type contentChange struct {
	configKey
	state      digest.State
	forbidden  string
	refused    time.Time
	unreadable string
	lasting    bool
}

func (r contentChange) apply(graph *referent.Graph, refused refusals) {
	if graph == nil {
		return
	}
	key := referent.ConfigKey(r.namespace, r.ref)
	if r.unreadable != "" {
		if graph.SetUnreadable(r.namespace, r.ref, r.unreadable, r.lasting) {
			refused.set(key, time.Time{})
		}
		return
	}
	refused.set(key, r.refused)
	if r.forbidden != "" {
		graph.SetForbidden(r.namespace, r.ref, r.forbidden)
		return
	}
	graph.SetConfig(r.namespace, r.ref, r.state)
}
