package reload

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Options say what the loop does. The zero values of the durations switch the gates off.
type Options struct {
	// Kinds of workloads, which may come and go. Those whose template cannot change (CreateOnly) are left out.
	Kinds Kinds
	// Reader reads the annotations of workloads.
	Reader stamp.Reader
	// Scope says which workloads are looked after.
	Scope scope.Scope
	// Settle is how long configuration must be quiet before a reload; SettleMax bounds the wait.
	Settle, SettleMax time.Duration
	// Refractory is the shortest time between two reloads of one workload.
	Refractory time.Duration
	// ReloadMissingRequired reloads also when an object that pods need to start was deleted.
	ReloadMissingRequired bool
	// Revision makes the value of config-hash SAP's revision digest.
	Revision bool
	// Webhook tells that an admission webhook of ours is meant to answer; without it the loop stamps by itself.
	Webhook bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Workers is the number of workloads treated at the same time besides those whose write is in flight; 0 means 16. The
	// more there are, the more of them share the reads of an object that they depend on.
	Workers int
}

// Store gives the state of config objects; configstate.Store is one.
type Store interface {
	OnEvent(func(configstate.Event))
	Observe(namespace string, refs []reference.Ref) map[reference.Ref]digest.State
	Current(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
	Live(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
	WaitForSync(ctx context.Context) error
	Recheck(ctx context.Context, namespace string, ref reference.Ref) error
}

// Keys gives the digest keys; keyring.Keyring is one.
type Keys interface {
	Ring() digest.Ring
	Refresh(ctx context.Context) error
	// OnChange registers a function that is called after each change of the ring.
	OnChange(changed func())
}

// Workloads are those of one kind; workloadstate.Watch is some.
type Workloads interface {
	// Run follows them until the context ends.
	Run(ctx context.Context)
	// Get returns one, or false if there is none. It shows each change before that is reported.
	Get(namespace, name string) (workload.Summary, bool)
}

// Dependencies are the parts that the loop works with, besides those of the manager.
type Dependencies struct {
	Store Store
	Keys  Keys
	// Watches is nil where all watches work, as in tests.
	Watches Watches
	Metrics prometheus.Registerer
	// Workloads returns those of a kind. changed is called for each that comes, changes or goes, while they are followed: the
	// version before it has nothing kept where there was none, that after it where there is none.
	Workloads func(kind workload.Kind, changed func(before, after workload.Summary)) Workloads
}

// loop reconciles workloads. Its parts are safe for concurrent use.
type loop struct {
	opts    Options
	watches *watches
	follow  func(kind workload.Kind, changed func(before, after workload.Summary)) Workloads
	gates   gates
	now     func() time.Time
	// leads is since when this process leads, nil before. Reloads from before were announced by another.
	leads atomic.Pointer[time.Time]

	store   Store
	keys    Keys
	health  Watches
	mapper  meta.RESTMapper
	cache   cache.Cache // of namespaces
	client  client.Client
	live    client.Reader
	metrics *metrics
	log     logr.Logger

	// events writes Events, lister lists them. instance names this process in them.
	events   sender
	lister   eventLister
	instance string
	catchUp  catchUp
	// eventLog is when a failed write of an Event was logged, in nanoseconds.
	eventLog atomic.Int64

	index   *index
	recent  *recent
	memory  *memory
	backoff backoff
	writes  *inflight.Limit[Key]
	queue   atomic.Pointer[queue]
}

type queue struct {
	workqueue.TypedRateLimitingInterface[Key]
}

// treatmentLimit is how long the treatment of one workload may take; what is not done by then is tried again.
const treatmentLimit = time.Minute

// SetupWithManager registers the loop. It runs on the leader; its watches run everywhere, so that a standby is warm.
func SetupWithManager(mgr manager.Manager, deps Dependencies, opts Options) error {
	if opts.Workers <= 0 {
		opts.Workers = 16
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	gates := gates{settle: opts.Settle, settleMax: opts.SettleMax, refractory: opts.Refractory}
	l := &loop{
		opts:    opts,
		watches: newWatches(),
		follow:  deps.Workloads,
		gates:   gates,
		now:     opts.Now,
		store:   deps.Store,
		keys:    deps.Keys,
		health:  deps.Watches,
		mapper:  mgr.GetRESTMapper(),
		cache:   mgr.GetCache(),
		client:  mgr.GetClient(),
		live:    mgr.GetAPIReader(),
		log:     mgr.GetLogger().WithName("reload"),
		index:   newIndex(),
		recent:  newRecent(opts.Settle),
		memory:  newMemory(),
		backoff: newBackoff(),
	}
	l.writes = newWrites(l)
	l.metrics = newMetrics(deps.Metrics, l.memory, l.now)
	registerWrites(deps.Metrics, l.writes)
	if err := l.writeEvents(mgr, deps.Metrics); err != nil {
		return err
	}
	warmup := true
	c, err := controller.NewTyped("reload", mgr, controller.TypedOptions[Key]{
		Reconciler:              l,
		MaxConcurrentReconciles: opts.Workers + maxWrites,
		EnableWarmup:            &warmup,
		// A connection that is dead without anybody having noticed must not hold a worker for as long as TCP would.
		ReconciliationTimeout: treatmentLimit,
	})
	if err != nil {
		return err
	}
	for _, run := range []manager.RunnableFunc{l.lead, l.recheck} {
		if err := mgr.Add(run); err != nil {
			return err
		}
	}
	return l.watch(c, l.log)
}

// lead runs once this process is the leader: every workload is queued, and from then on all that happens. A standby queues
// nothing, since nobody would take it out, however many workloads come and go.
func (l *loop) lead(ctx context.Context) error {
	l.memory.Lead()
	now := l.now()
	l.leads.Store(&now)
	l.addAll()
	l.raise(ctx)
	return nil
}

// addAll queues every workload. A change of the digest keys does so, too: workloads that came without a key have waited for
// it, and what was recorded under a lost key must be adopted before the next change, which would be missed otherwise.
func (l *loop) addAll() { l.add(priorityWorkload, l.index.All()...) }

// namespaceKind is the kind whose labels the namespace selector looks at.
var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// object returns what is kept of the workload of a key, or false if there is none.
func (l *loop) object(ctx context.Context, key Key) (workload.Summary, bool) {
	w := l.watches.get(key.Kind)
	if w == nil {
		return workload.Summary{}, false
	}
	return l.readWorkload(ctx, w, key)
}
