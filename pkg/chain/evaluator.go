package chain

import (
	"context"
	"reflect"

	"github.com/go-logr/logr"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// evaluator owns the graph: in one goroutine, it takes in what has gathered, evaluates, and begins what follows from that.
type evaluator struct {
	inbox      *inbox
	graphState *graphState
	sources    *sources
	reads      *reads
	publisher  *publisher
	notifier   *notifier
	log        logr.Logger

	definitions []referent.Definition
	synced      chan struct{} // closed once
}

// run evaluates until the context ends.
func (e *evaluator) run(ctx context.Context) error {
	defer e.sources.stop()
	for {
		var asked chan struct{}
		gathered := true
		select {
		case <-ctx.Done():
			return nil
		case asked = <-e.inbox.undebounced:
		case <-e.inbox.came:
			gathered = false
		case <-e.inbox.wake:
			if asked = e.pause(ctx); ctx.Err() != nil {
				return nil
			}
		}
		e.apply(ctx, e.inbox.take(gathered))
		e.sync()
		if asked != nil {
			close(asked)
		}
	}
}

// pause lets changes gather for the debounce, then has the config objects among them read, so that one evaluation takes in all
// of them. Reads that take longer than another debounce do not hold up the rest. A question ends both.
func (e *evaluator) pause(ctx context.Context) (asked chan struct{}) {
	asked = e.inbox.wait(ctx, nil)
	if asked == nil && ctx.Err() == nil {
		e.reads.want(e.inbox.takeConfig(), nil)
		e.graphState.setOutdated(e.reads.outstanding())
		asked = e.inbox.wait(ctx, e.reads.begin()) //nolint:contextcheck // a read ends with the configuration
	}
	return asked
}

// apply takes in what has gathered, evaluates, and reports what has changed.
func (e *evaluator) apply(ctx context.Context, p pending) {
	e.publisher.take(p) //nolint:contextcheck // a read ends with the configuration
	reconfigured := p.schema != nil && e.reconfigure(ctx, p.definitions, p.schema)
	before := e.graphState.graph
	if graph := e.latest(p); graph != nil {
		e.evaluate(graph, p) //nolint:contextcheck // a watch and a read end with the configuration, a write with the leadership
	} else {
		for _, change := range p.changes {
			change.apply(nil, nil)
		}
		e.reads.end(nil, p.batches, p.retries)
	}
	e.sources.restart(p) //nolint:contextcheck // a watch ends with the configuration
	if reconfigured || before == nil && e.graphState.graph != nil {
		e.notifier.reread()
	}
}

// evaluate takes what has gathered into a graph, and puts that in force.
func (e *evaluator) evaluate(graph *referent.Graph, p pending) {
	changes, unread := e.graphState.evaluate(graph, p.changes, e.sources.takeChangedSources)
	e.graphState.record(changes)
	e.reads.end(graph, p.batches, p.retries)
	e.reads.want(p.config, unread)
	e.retry(p.refused)
	e.graphState.setOutdated(e.reads.outstanding()) // before a read begins: a change after that must be read again
	if p.gathered {
		e.reads.begin()
	} else if e.reads.any((*namespaceReads).ready) {
		e.inbox.wakeUp() // reads wait for the debounce: one that ends must not begin the next one at once
	}
	e.publisher.publish(p, changes)
	e.notifier.report(changes)
}

// reconfigure replaces the watches, unless the resources are the same. It reports whether answers may be others than before.
func (e *evaluator) reconfigure(ctx context.Context, definitions []referent.Definition, schema *referent.Schema) bool {
	same := len(definitions) == len(e.definitions) && (len(definitions) == 0 || reflect.DeepEqual(definitions, e.definitions))
	first := e.graphState.configure(schema, same)
	if same {
		return first
	}
	e.sources.stop()
	e.publisher.clear()
	e.definitions = definitions
	e.sources.start(ctx, schema)
	e.log.Info("custom resources configured", "resources", len(definitions))
	return true
}

// latest returns the graph to be in force: the present one, or another one, of what the watches have delivered. It is nil where the
// configuration has no resource, and as long as there is no digest key: the change of the keys brings us back.
func (e *evaluator) latest(p pending) *referent.Graph {
	if e.sources.none() || e.graphState.graph != nil && !p.rekeyed {
		return e.graphState.graph
	}
	graph, err := referent.NewGraph(e.graphState.schema, e.graphState.ring())
	if err != nil {
		return e.graphState.graph
	}
	e.sources.fill(graph)
	return graph
}

// sync opens WaitForSync when nothing is under way.
func (e *evaluator) sync() {
	select {
	case <-e.synced:
		return
	default:
	}
	if !e.graphState.configured || e.graphState.graph == nil && !e.sources.none() {
		return
	}
	if e.sources.answered() && !e.reads.any((*namespaceReads).underWay) {
		close(e.synced)
	}
}

// retry repeats what was refused some time ago, unless it is under way.
func (e *evaluator) retry(keys []referent.Key) {
	for _, key := range keys {
		at, refused := e.graphState.refusedAt(key)
		if ref, config := key.Ref(); !refused || e.graphState.now().Sub(at) < retryInterval {
			continue
		} else if config {
			e.reads.of(key.Namespace).again(ref)
		} else {
			e.sources.relist(key, at)
		}
	}
}
