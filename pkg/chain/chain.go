package chain

import (
	"context"
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

// Options are what a Chain works with. Client, RefreshKeys, Namespaces, Without, FieldOwner, Publishes, ReadRefused, Debounce and Now are
// optional.
type Options struct {
	// Client watches custom resources; nil where there is no configuration that could have any: then Start is not needed.
	Client dynamic.Interface
	Config Config
	// Ring returns the current digest keys.
	Ring func() digest.Ring
	// RefreshKeys reads the digest keys anew, and returns when the read of those in the Ring began. Nil: the Ring is never old.
	RefreshKeys func(ctx context.Context) (began time.Time, err error)
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
	if o.RefreshKeys == nil {
		o.RefreshKeys = func(context.Context) (time.Time, error) { return o.Now(), nil }
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
	// inFlight is how many custom resources are written at a time, one of each namespace. Each live reader reads half as many, so that none
	// waits for another one; one namespace can have three quarters of a half.
	inFlight          = 64
	readsInFlight     = inFlight / 2
	readsOfANamespace = readsInFlight * 3 / 4
	// largeInFlight is how many objects of more than largeread.Size are read live at a time, for the webhook and the loop each: decoded, one
	// of 3 MiB can take 80 MB.
	largeInFlight     = 2
	largeOfANamespace = 1
)

// Chain keeps the graph of custom resources. Its methods are safe for concurrent use.
type Chain struct {
	options Options
	inbox   *inbox
	*graphState
	evaluator *evaluator
	notifier  *notifier
	// loop and webhook read custom resources live, each for one part of the program; rechecks does while watches fail, so that reads of a
	// resource that hang hold up no reload.
	loop, webhook, rechecks *liveReader
}

// New makes a Chain that knows no resource. It does no I/O.
func New(o Options) *Chain {
	o = o.withDefaults()
	in, state, configuration := newInbox(o.Debounce), newGraphState(o), &lifetime{}
	sources := &sources{
		client: o.Client, namespaces: o.Namespaces, inbox: in, lifetime: configuration, now: o.Now, log: o.Log,
		mostReferences: referent.MaxLinks,
	}
	c := &Chain{options: o, inbox: in, graphState: state, notifier: &notifier{isHeld: state.isHeld, now: o.Now}}
	c.loop, c.webhook, c.rechecks = c.newLiveReader(), c.newLiveReader(), c.newLiveReader()
	c.rechecks.large = c.loop.large // as many in all
	c.evaluator = &evaluator{
		inbox: in, graphState: state, sources: sources, notifier: c.notifier, log: o.Log, synced: make(chan struct{}),
		reads: &reads{
			config: o.Config, namespaces: o.Namespaces, inbox: in, lifetime: configuration, now: o.Now, log: o.Log,
			in: map[string]*namespaceReads{},
		},
		publisher: &publisher{
			client: o.Client, fieldOwner: o.FieldOwner, publishes: o.Publishes, now: o.Now, log: o.Log,
			inbox: in, graphState: state, sources: sources, lifetime: configuration, writes: fairlimit.New(inFlight, 1),
			in: map[string]*publications{}, contested: contests{}, restoring: map[referent.Key]time.Time{},
			keys: keyReads{refresh: o.RefreshKeys, unknown: map[referent.Key]unknownKey{}},
		},
	}
	return c
}

func newGraphState(o Options) *graphState {
	schema, _ := referent.Compile(nil, nil, o.Annotation)
	return &graphState{
		ring: o.Ring, now: o.Now, history: history{refused: refusals{}, spare: defaultSpare},
		configuration: configuration{schema: schema, configured: o.Client == nil, began: o.Now()},
	}
}

func (c *Chain) newLiveReader() *liveReader {
	return &liveReader{
		objects: objects{
			client: c.options.Client, limit: fairlimit.New(readsInFlight, readsOfANamespace),
			large: largeread.New(largeInFlight, largeOfANamespace), refused: c.options.ReadRefused,
		},
		graphState: c.graphState, inbox: c.inbox, namespaces: c.options.Namespaces, log: c.options.Log,
	}
}

// OnEvent registers a handler of changes of custom resources, before Start. It must only enqueue.
func (c *Chain) OnEvent(handler func(configstate.Event)) {
	c.notifier.handlers = append(c.notifier.handlers, handler)
}

// OnReread registers, before Start, a function that is called when Workload, Check and State may answer otherwise than before without an
// event: a configuration was read, or is another one, or there is a digest key at last. It must return soon.
func (c *Chain) OnReread(handler func()) {
	c.notifier.rereaders = append(c.notifier.rereaders, handler)
}

// OnUnpublished registers a handler of digests that cannot be written, before Start. It is called for each object, and again by the
// first failure that comes an hour later or more, until the digest is written. It must return soon.
func (c *Chain) OnUnpublished(handler func(Unpublished)) {
	c.evaluator.publisher.handlers = append(c.evaluator.publisher.handlers, handler)
}

// Configure puts other resources in force. They must be valid; equal ones change nothing. It returns where they have references that
// are ignored, because this installation does not handle the kind.
func (c *Chain) Configure(definitions []referent.Definition) (ignored []string) {
	schema, faults := referent.Compile(field.NewPath("referents"), definitions, c.options.Annotation)
	if len(faults) > 0 {
		c.options.Log.Error(faults.ToAggregate(), "the resources of the configuration are not valid; the previous ones remain in force")
		return nil
	}
	ignored = schema.Ignore(c.options.Without...)
	c.rules.Store(schema)
	c.inbox.gather(func(p *pending) { p.definitions, p.schema = definitions, schema })
	return ignored
}

// KeysChanged makes the graph again under the current digest keys.
func (c *Chain) KeysChanged() { c.inbox.gather(func(p *pending) { p.rekeyed = true }) }

// ConfigChanged takes an event of a config object, which may be part of the graph.
func (c *Chain) ConfigChanged(e configstate.Event) {
	if c.concerns(e.Namespace, e.Ref) {
		c.inbox.gather(func(p *pending) { p.changed(e.Namespace, e.Ref) })
	}
}

// Lead publishes until the context ends. It is for the leader. It reads the digest keys first: the earlier leader may have published under
// a key that the watch has not delivered here. If they cannot be read, only what is published under such a key waits for them.
func (c *Chain) Lead(ctx context.Context) error {
	if _, err := c.options.RefreshKeys(ctx); err != nil {
		c.options.Log.V(1).Info("cannot read the digest keys; publishing with those in memory", "error", err.Error())
	}
	c.inbox.gather(func(p *pending) { p.leads = ctx })
	<-ctx.Done()
	c.inbox.gather(func(p *pending) { p.leads = ctx })
	return nil
}

// Start owns the graph until the context ends.
func (c *Chain) Start(ctx context.Context) error { return c.evaluator.run(ctx) }

// State returns the state of a custom resource that a workload of a namespace tracks. While it is held, or missing, the state
// has a Hold and no Entries. The handlers are called when it changes.
func (c *Chain) State(namespace string, ref reference.Ref) digest.State {
	state, key, unseen := c.state(namespace, ref)
	if unseen {
		c.record([]referent.Change{{Key: key, Held: true}})
		c.notifier.reportLate([]referent.Key{key})
	}
	return state
}

// Referred returns the objects, by namespace, to which custom resources refer; those that may not be watched are left out. What happens to
// them is no concern of an index of workloads: what stands in for a watch that fails has to know them.
func (c *Chain) Referred() map[string][]reference.Ref {
	referred := map[string][]reference.Ref{}
	for _, key := range c.referred() {
		if key.Namespace != "" && namespaces(c.options.Namespaces).outside(key.Namespace) {
			continue
		}
		ref, ok := key.Ref()
		if !ok {
			ref = reference.Ref{Kind: reference.CustomKind(key.GroupResource()), Name: key.Name}
		}
		referred[key.Namespace] = append(referred[key.Namespace], ref)
	}
	return referred
}

// Retry asks the API server again for what it has refused and what holds custom resources that a workload of a namespace tracks. By
// itself a list, or a read of a config object, is repeated after up to a minute. It returns at once; the state of each resource says when
// the next answer refused it, and the handlers are called if it did not.
func (c *Chain) Retry(namespace string, refs []reference.Ref) {
	c.inbox.retry(c.refusedBelow(namespace, refs))
}

// WaitForSync waits until every resource that can be read has been read once, and what it refers to. It is for programs that
// look once. The error is the context's.
func (c *Chain) WaitForSync(ctx context.Context) error {
	select {
	case <-c.evaluator.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
