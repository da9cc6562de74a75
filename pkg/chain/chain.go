package chain

import (
	"context"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// Config reads the content of ConfigMaps and Secrets; configstate.Store is one.
type Config interface {
	ReadIfChanged(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
}

// Options are what a Chain works with. Client, Namespaces, Without, FieldOwner, Publishes, ReadRefused, Debounce and Now are optional.
type Options struct {
	// Client watches custom resources; nil where there is no configuration that could have any: then Start is not needed.
	Client dynamic.Interface
	Config Config
	// Ring returns the current digest keys.
	Ring func() digest.Ring
	// Namespaces are those to watch; none means all of them.
	Namespaces []string
	// Without are the kinds of config objects that this installation does not handle. Their changes would not be seen, so that
	// references to them are ignored.
	Without []reference.Kind
	// Annotation is the key of the published digest where the configuration names no other.
	Annotation string
	// FieldOwner owns published annotations. It must differ from that of any other installation: by server-side apply, an owner
	// removes what it has applied before and does not apply again. Empty is pod-reloader-referents.
	FieldOwner string
	// Publishes reports whether digests are written in a namespace, without I/O; the empty one is that of objects in none. Nil:
	// in all of them.
	Publishes func(namespace string) bool
	// ReadRefused is called, by several goroutines, where the API server refuses to get a custom resource. The graph answers then, so that
	// nothing else shows it. It must return soon.
	ReadRefused func(referent.Key)
	// Debounce is how long changes gather before they are evaluated; 0 is 100 ms.
	Debounce time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	Log logr.Logger
}

func (o Options) withDefaults() Options {
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
	if o.ReadRefused == nil {
		o.ReadRefused = func(referent.Key) {}
	}
	return o
}

const (
	defaultDebounce = 100 * time.Millisecond
	// inFlight is how many custom resources are written at a time, one of each namespace. The webhook and the loop read half as many live
	// each, so that neither waits for the other; one namespace can have three quarters of a half.
	inFlight          = 64
	readsInFlight     = inFlight / 2
	readsOfANamespace = readsInFlight * 3 / 4
	// largeInFlight is how many objects of more than largeread.Size are read live at a time, for the webhook and the loop each: decoded, one
	// of 3 MiB can take 80 MB.
	largeInFlight     = 2
	largeOfANamespace = 1
)

// Chain keeps the graph of custom resources. Its methods are safe for concurrent use.
//
// The goroutine of Start owns the graph, and all parts but two: what gathers for it, and what questions are answered from.
type Chain struct {
	options Options
	inbox   *inbox
	*graphState
	// loop and webhook read custom resources live, each for one part of the program.
	loop, webhook *liveReader
	// handlers are called for changes of custom resources, rereaders when what the configuration says is in force.
	handlers  []func(configstate.Event)
	rereaders []func()
	synced    chan struct{} // closed once

	definitions []referent.Definition
	lifetime    *lifetime
	sources     *sources
	reads       *reads
	publisher   *publisher
}

// New makes a Chain that knows no resource. It does no I/O.
func New(o Options) *Chain {
	o = o.withDefaults()
	c := &Chain{options: o, inbox: newInbox(o.Debounce), lifetime: &lifetime{}, synced: make(chan struct{})}
	c.graphState = newGraphState(o)
	c.loop, c.webhook = c.newLiveReader(o), c.newLiveReader(o)
	c.sources = &sources{
		client: o.Client, namespaces: o.Namespaces, inbox: c.inbox, lifetime: c.lifetime, now: o.Now, log: o.Log,
	}
	c.reads = &reads{
		config: o.Config, namespaces: o.Namespaces, inbox: c.inbox, lifetime: c.lifetime, now: o.Now, log: o.Log,
		in: map[string]*namespaceReads{},
	}
	c.publisher = &publisher{
		client: o.Client, fieldOwner: o.FieldOwner, publishes: o.Publishes, now: o.Now, log: o.Log,
		inbox: c.inbox, graphState: c.graphState, sources: c.sources, lifetime: c.lifetime, writes: fairlimit.New(inFlight, 1),
		in: map[string]*publications{}, contested: contests{}, restoring: map[referent.Key]time.Time{},
	}
	return c
}

func newGraphState(o Options) *graphState {
	schema, _ := referent.Compile(nil, nil, o.Annotation)
	return &graphState{
		ring: o.Ring, now: o.Now, history: history{refused: refusals{}},
		configuration: configuration{schema: schema, configured: o.Client == nil, began: o.Now()},
	}
}

func (c *Chain) newLiveReader(o Options) *liveReader {
	return &liveReader{
		objects: objects{
			client: o.Client, limit: fairlimit.New(readsInFlight, readsOfANamespace),
			large: largeread.New(largeInFlight, largeOfANamespace), refused: o.ReadRefused,
		},
		graphState: c.graphState, inbox: c.inbox, namespaces: o.Namespaces, log: o.Log,
	}
}

// OnEvent registers a handler of changes of custom resources, before Start. It must only enqueue.
func (c *Chain) OnEvent(handler func(configstate.Event)) { c.handlers = append(c.handlers, handler) }

// OnReread registers, before Start, a function that is called when Workload, Check and State may answer otherwise than before without an
// event: a configuration was read, or is another one, or there is a digest key at last. It must return soon.
func (c *Chain) OnReread(handler func()) { c.rereaders = append(c.rereaders, handler) }

// OnUnpublished registers a handler of digests that cannot be written, before Start. It is called for each object, and again by the
// first failure that comes an hour later or more, until the digest is written. It must return soon.
func (c *Chain) OnUnpublished(handler func(Unpublished)) {
	c.publisher.handlers = append(c.publisher.handlers, handler)
}

// Configure puts other resources in force. They must be valid; equal ones change nothing. It returns where they have references that
// are ignored, because this installation does not handle the kind.
func (c *Chain) Configure(definitions []referent.Definition) (ignored []string) {
	schema, ignored, faults := c.compile(definitions)
	if len(faults) == 0 {
		c.rules.Store(schema)
	}
	c.inbox.gather(func(p *pending) { p.definitions, p.configured = definitions, true })
	return ignored
}

// compile returns what this installation follows of some resources, and which references it ignores.
func (c *Chain) compile(definitions []referent.Definition) (schema *referent.Schema, ignored []string, faults field.ErrorList) {
	schema, faults = referent.Compile(field.NewPath("referents"), definitions, c.options.Annotation)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	return schema, schema.Ignore(c.options.Without...), nil
}

// KeysChanged makes the graph again under the current digest keys.
func (c *Chain) KeysChanged() { c.inbox.gather(func(p *pending) { p.rekeyed = true }) }

// ConfigChanged takes an event of a config object, which may be part of the graph.
func (c *Chain) ConfigChanged(e configstate.Event) {
	if c.concerns(e.Namespace, e.Ref) {
		c.inbox.gather(func(p *pending) { p.changed(e.Namespace, e.Ref) })
	}
}

// Lead publishes until the context ends. It is for the leader.
func (c *Chain) Lead(ctx context.Context) error {
	c.inbox.gather(func(p *pending) { p.leads = ctx })
	<-ctx.Done()
	c.inbox.gather(func(p *pending) { p.leads = ctx })
	return nil
}

// Start owns the graph until the context ends.
func (c *Chain) Start(ctx context.Context) error {
	defer c.sources.stop()
	for {
		var asked chan struct{}
		gathered := true
		select {
		case <-ctx.Done():
			return nil
		case asked = <-c.inbox.undebounced:
		case <-c.inbox.came:
			gathered = false
		case <-c.inbox.wake:
			if asked = c.pause(ctx); ctx.Err() != nil {
				return nil
			}
		}
		c.apply(ctx, c.inbox.take(gathered))
		c.sync()
		if asked != nil {
			close(asked)
		}
	}
}

// pause lets changes gather for the debounce, then has the config objects among them read, so that one evaluation takes in all
// of them. Reads that take longer than another debounce do not hold up the rest. A question ends both.
func (c *Chain) pause(ctx context.Context) (asked chan struct{}) {
	asked = c.inbox.wait(ctx, nil)
	if asked == nil && ctx.Err() == nil {
		c.reads.want(c.inbox.takeConfig(), nil)
		c.setOutdated(c.reads.outstanding())
		asked = c.inbox.wait(ctx, c.reads.begin()) //nolint:contextcheck // a read ends with the configuration
	}
	return asked
}

// apply takes in what has gathered, evaluates, and reports what has changed.
func (c *Chain) apply(ctx context.Context, p pending) {
	c.publisher.take(p)
	reconfigured := p.configured && c.reconfigure(ctx, p.definitions)
	before := c.graph
	if graph := c.latest(p); graph != nil {
		c.evaluate(graph, p) //nolint:contextcheck // a watch and a read end with the configuration, a write with the leadership
	} else {
		for _, change := range p.changes {
			change.apply(nil, nil)
		}
		c.reads.end(nil, p.batches, p.retries)
	}
	c.sources.restart(p) //nolint:contextcheck // a watch ends with the configuration
	if reconfigured || before == nil && c.graph != nil {
		c.reread()
	}
}

// evaluate takes what has gathered into a graph, and puts that in force.
func (c *Chain) evaluate(graph *referent.Graph, p pending) {
	changes, unread := c.graphState.evaluate(graph, p.changes, c.sources.takeChangedSources)
	c.record(changes)
	c.reads.end(graph, p.batches, p.retries)
	c.reads.want(p.config, unread)
	c.retry(p.refused)
	c.setOutdated(c.reads.outstanding()) // before a read begins: a change after that must be read again
	if p.gathered {
		c.reads.begin()
	} else if c.reads.ready() {
		c.inbox.wakeUp() // reads wait for the debounce: one that ends must not begin the next one at once
	}
	c.publisher.publish(p, changes)
	c.report(changes)
}

// reconfigure replaces the watches, unless the resources are the same. It reports whether answers may be others than before.
func (c *Chain) reconfigure(ctx context.Context, definitions []referent.Definition) bool {
	same := len(definitions) == len(c.definitions) && (len(definitions) == 0 || reflect.DeepEqual(definitions, c.definitions))
	schema, _, faults := c.compile(definitions)
	if len(faults) > 0 {
		c.options.Log.Error(faults.ToAggregate(), "the resources of the configuration are not valid; the previous ones remain in force")
		return false
	}
	first := c.configure(schema, same)
	if same {
		return first
	}
	c.sources.stop()
	c.publisher.clear()
	c.definitions = definitions
	c.sources.start(ctx, schema)
	c.options.Log.Info("custom resources configured", "resources", len(definitions))
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
	if c.sources.none() || c.graph != nil && !p.rekeyed {
		return c.graph
	}
	graph, err := referent.NewGraph(c.schema, c.options.Ring())
	if err != nil {
		return c.graph
	}
	c.sources.fill(graph)
	return graph
}

// sync opens WaitForSync when nothing is under way.
func (c *Chain) sync() {
	select {
	case <-c.synced:
		return
	default:
	}
	if !c.configured || c.graph == nil && !c.sources.none() {
		return
	}
	if c.sources.answered() && !c.reads.underWay() {
		close(c.synced)
	}
}
