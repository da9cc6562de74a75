package chain

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// Config reads the content of ConfigMaps and Secrets; configstate.Store is one.
type Config interface {
	Current(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
}

// Options are what a Chain works with. Client, Namespaces, FieldOwner, Publishes, Debounce and Now are optional.
type Options struct {
	// Client watches custom resources; nil where there is no configuration that could have any: then Start is not needed.
	Client dynamic.Interface
	Config Config
	// Ring returns the current digest keys.
	Ring func() digest.Ring
	// Namespaces are those to watch; none means all of them.
	Namespaces []string
	// Annotation is the key of the published digest where the configuration names no other.
	Annotation string
	// FieldOwner owns published annotations. It must differ from that of any other installation: by server-side apply, an owner
	// removes what it has applied before and does not apply again. Empty is pod-reloader-referents.
	FieldOwner string
	// Publishes reports whether digests are written in a namespace, without I/O; the empty one is that of objects in none. Nil:
	// in all of them.
	Publishes func(namespace string) bool
	// Debounce is how long changes gather before they are evaluated; 0 is 100 ms.
	Debounce time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	Log logr.Logger
}

const (
	defaultDebounce = 100 * time.Millisecond
	// inFlight is how many custom resources are read live, and how many are written, at a time. One namespace can have three
	// quarters of the reads, and one write.
	inFlight = 64
)

// Chain keeps the graph of custom resources. Its methods are safe for concurrent use.
type Chain struct {
	options  Options
	handlers []func(configstate.Event)
	// rules say which workloads run with which custom resources; nil until a configuration has been read. They are in force
	// before the graph is, and rereaders are called once both are.
	rules     atomic.Pointer[referent.Schema]
	rejected  atomic.Bool // there is no valid configuration to wait for
	rereaders []func()
	// unpublishedHandlers are called for digests that cannot be written.
	unpublishedHandlers []func(Unpublished)
	wake                chan struct{} // holds one token: something is pending
	came                chan struct{} // holds one token: what the goroutine of Start has begun has ended
	// undebounced takes questions that do not wait for the debounce; each is closed when all is applied that was pending.
	undebounced chan chan struct{}
	synced      chan struct{} // closed once
	// gets and writes bound the requests for custom resources that are in flight.
	gets, writes *fairlimit.Limit

	// mu protects what has gathered for the goroutine of Start.
	mu sync.Mutex
	// pending waits for the debounce. arrived does not: it is the end of what a change began that has waited for it.
	pending, arrived pending

	// answers protects what questions are answered from; it is written by the goroutine of Start only.
	answers    sync.RWMutex
	configured bool
	began      time.Time
	schema     *referent.Schema
	graph      *referent.Graph
	// evaluations counts evaluated nodes, since the start.
	evaluations int
	// held is since when nodes are held.
	held map[referent.Key]time.Time
	// refused are what the API server has refused.
	refused refusals
	// tracked has the latest changes of custom resources.
	tracked map[referent.Key]steps
	// prunedAt is when the program last dropped entries of held, refused and tracked for objects that are in no graph.
	prunedAt time.Time

	// owned is for the goroutine of Start alone.
	owned owned
}

// owned is the state of the goroutine that owns the graph.
type owned struct {
	definitions []referent.Definition
	sources     []*source
	// turned are those of another state than before the last evaluation.
	turned   []*source
	watching context.Context // of the watches, which may be made anew
	stop     context.CancelFunc
	running  sync.WaitGroup
	// reads and publications are by namespace.
	reads        map[string]*reads
	publications map[string]*publications
	// contested is how often the digest of an object was restored in a row.
	contested map[referent.Key]int
	// unpublished are the objects whose digest could not be written.
	unpublished unpublished
	// pace are the objects whose digest was written of late.
	pace  pace
	leads context.Context // nil while this process does not lead
	sweep bool            // look at all publications
}

// New makes a Chain that knows no resource. It does no I/O.
func New(o Options) *Chain {
	if o.Debounce == 0 {
		o.Debounce = defaultDebounce
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FieldOwner == "" {
		o.FieldOwner = defaultFieldOwner
	}
	if o.Publishes == nil {
		o.Publishes = func(string) bool { return true }
	}
	c := &Chain{
		options: o, wake: make(chan struct{}, 1), came: make(chan struct{}, 1), undebounced: make(chan chan struct{}), synced: make(chan struct{}),
	}
	c.gets, c.writes = fairlimit.New(inFlight, inFlight*3/4), fairlimit.New(inFlight, 1)
	c.schema, _ = referent.Compile(nil, nil, o.Annotation)
	c.configured, c.began, c.refused = o.Client == nil, o.Now(), refusals{}
	c.owned.reads, c.owned.publications, c.owned.contested = map[string]*reads{}, map[string]*publications{}, map[referent.Key]int{}
	return c
}

// OnEvent registers a handler of changes of custom resources, before Start. It must only enqueue.
func (c *Chain) OnEvent(handler func(configstate.Event)) { c.handlers = append(c.handlers, handler) }

// Configure puts other resources in force. They must be valid; equal ones change nothing.
func (c *Chain) Configure(definitions []referent.Definition) {
	if schema, faults := referent.Compile(nil, definitions, c.options.Annotation); len(faults) == 0 {
		c.rules.Store(schema)
	}
	c.gather(func(p *pending) { p.definitions, p.configured = definitions, true })
}

// Reject says that there is no valid configuration. It may come later, but nothing waits for it.
func (c *Chain) Reject() { c.rejected.Store(true) }

// KeysChanged makes the graph anew under the current digest keys.
func (c *Chain) KeysChanged() { c.gather(func(p *pending) { p.rekeyed = true }) }

// ConfigChanged takes an event of a config object, which may be part of the graph.
func (c *Chain) ConfigChanged(e configstate.Event) {
	c.answers.RLock()
	concerned := c.graph != nil && c.graph.Refers(e.Namespace, e.Ref)
	c.answers.RUnlock()
	if concerned {
		c.gather(func(p *pending) { p.changed(e.Namespace, e.Ref) })
	}
}

// apply takes in what has gathered, evaluates, and reports what has changed.
func (c *Chain) apply(ctx context.Context, p pending) {
	c.lead(p)
	reconfigured := p.configured && c.reconfigure(ctx, p.definitions)
	before := c.graph
	if graph := c.latest(p); graph != nil {
		c.evaluate(graph, p) //nolint:contextcheck // a read ends with the configuration, a write with the leadership
	} else {
		for _, change := range p.changes {
			change.apply(c, nil)
		}
		c.closeBatches(p)
	}
	if reconfigured || before == nil && c.graph != nil {
		c.reread()
	}
}

// evaluate takes what has gathered into a graph, and puts that in force.
func (c *Chain) evaluate(graph *referent.Graph, p pending) {
	c.answers.Lock()
	for _, change := range p.changes {
		change.apply(c, graph)
	}
	done := graph.Evaluate()
	c.evaluations += done.Evaluated
	c.enforce(graph)
	done.Changes = append(done.Changes, c.turned()...)
	unread := graph.Unread()
	c.answers.Unlock()
	c.recordHolds(done.Changes)
	c.restart(p.changes)
	c.closeBatches(p)
	c.want(p, unread)
	c.retry(p.refused)
	if p.gathered {
		c.read()
	} else if c.wanting() {
		signal(c.wake) // reads wait for the debounce: one that ends must not begin the next one at once
	}
	c.publish(p, done.Changes)
	c.report(done.Changes)
}

// enforce has questions answered from a graph, which was evaluated. Of one that was never evaluated the answers would be wrong.
func (c *Chain) enforce(graph *referent.Graph) {
	if graph == c.graph {
		return
	}
	c.graph, c.tracked = graph, map[referent.Key]steps{}
	if c.held == nil {
		c.held = map[referent.Key]time.Time{} // under other keys, the same objects are held
	}
}

// reconfigure replaces the watches, unless the resources are the same. It reports whether answers may be others than before.
func (c *Chain) reconfigure(ctx context.Context, definitions []referent.Definition) bool {
	same := len(definitions) == len(c.owned.definitions) && (len(definitions) == 0 || reflect.DeepEqual(definitions, c.owned.definitions))
	schema, faults := referent.Compile(field.NewPath("referents"), definitions, c.options.Annotation)
	if len(faults) > 0 {
		c.options.Log.Error(faults.ToAggregate(), "The resources of the configuration are not valid; the previous ones remain in force")
		return false
	}
	c.answers.Lock()
	first := !c.configured
	c.configured = true
	if same {
		c.answers.Unlock()
		return first
	}
	c.schema, c.graph, c.held, c.tracked, c.refused = schema, nil, nil, nil, refusals{}
	c.answers.Unlock()
	c.stopSources()
	c.owned.unpublished.clear()
	c.owned.definitions = definitions
	c.startSources(ctx, schema)
	c.options.Log.Info("Custom resources configured", "resources", len(definitions))
	return true
}

// reread has the loop look at its workloads once more: what it has asked for may be in no graph, and then no change of one names it.
func (c *Chain) reread() {
	for _, handler := range c.rereaders {
		handler()
	}
}

// latest returns the graph to be in force: the present one, or another one, of what the watches have delivered. It is nil where the
// configuration has no resource, and as long as there is no digest key: the change of the keys brings us back.
func (c *Chain) latest(p pending) *referent.Graph {
	if len(c.owned.sources) == 0 || c.graph != nil && !p.rekeyed {
		return c.graph
	}
	graph, err := referent.NewGraph(c.schema, c.options.Ring())
	if err != nil {
		return c.graph
	}
	for _, s := range c.owned.sources {
		s.fill(graph)
	}
	return graph
}
