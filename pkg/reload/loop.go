package reload

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// loop reconciles workloads. Its parts are safe for concurrent use.
type loop struct {
	kinds    tracking.Kinds
	jobs     action.Jobs
	store    Store
	keys     Keys
	state    *state.State
	backoff  state.Backoff
	leads    *queue.Leadership
	queue    *queue.Queue
	tracking *tracking.Tracking
	gather   gather.Gatherer
	pacing   pacing
	events   *report.Reporter
	problems problems
	actions  *action.Actions
	large    largeread.Limit
	now      func() time.Time
}

// A reconciliation with a response of more than largeread.Size waits for its turn before it reads on: decoded, a workload of 3 MiB can
// take 80 MB, and a CronJob has its Jobs besides. The turn lasts until the reconciliation ends, since the objects are in memory that long.
// So a namespace whose writes hang keeps one turn for up to reconcileLimit.
const (
	largeInMemory     = 3
	largeOfANamespace = 1
)

// loopDependencies are what newLoop needs besides the Options.
type loopDependencies struct {
	Dependencies

	mapper    tracking.Mapper
	cache     cache.Cache // of namespaces
	client    action.Client
	apiReader client.Reader
	log       logr.Logger
}

// newLoop puts the parts together.
func newLoop(with loopDependencies, opts Options) *loop {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	l := &loop{
		kinds: opts.Kinds, jobs: opts.Jobs, store: with.Store, keys: with.Keys, now: opts.Now, large: largeread.New(largeInMemory, largeOfANamespace),
		state: &state.State{}, backoff: state.NewBackoff(), leads: &queue.Leadership{},
	}
	l.queue = queue.New(l.leads, l.now)
	l.tracking = tracking.New(tracking.Options{
		Reader: opts.Reader, Scope: opts.Scope, Direct: !opts.Webhook, FollowJobs: opts.Jobs.Follow, Ignores: opts.Jobs.Ignores, Settle: opts.Settle,
		Joined:    l.join,
		Workloads: with.Workloads, Summary: with.Summary, Patterns: with.Patterns, Watches: with.Watches, Mapper: with.mapper,
		Cache: with.cache, APIReader: with.apiReader, Store: with.Store, Large: l.large,
		State: l.state, Backoff: l.backoff, Queue: l.queue, Now: l.now, Log: with.log,
	})
	l.gather = gather.Gatherer{
		Reader: opts.Reader, Store: with.Store, Keys: with.Keys, APIReader: with.apiReader, Past: with.Past,
		Creations: &l.state.Creations, Versions: &l.state.Versions, Records: &l.state.Records, Now: l.now,
		Settings: opts.Settings, WithoutRuns: opts.WithoutRuns,
	}
	l.pacing = pacing{
		gates: state.Gates{Settle: opts.Settle, SettleMax: opts.SettleMax, Refractory: opts.Refractory},
		state: l.state, now: l.now, retry: with.Retry,
	}
	l.events = report.New(report.Options{
		Out: with.Events, Alerts: with.Alerts, Instance: opts.Instance, Leads: l.leads, State: l.state,
		Metrics: with.Metrics, CountByNamespace: opts.CountByNamespace, Now: l.now, Log: with.log,
	})
	l.problems = problems{l.events, with.Store, l.state, newMetrics(with.Metrics, l.state.Due.Oldest, l.now), l.now}
	l.actions = action.New(action.Options{
		Gather: l.gather, Client: with.client, State: l.state, Backoff: l.backoff, Queue: l.queue, Events: l.events, Metrics: with.Metrics,
		Gates: l.pacing.gates, Webhook: opts.Webhook, InScope: l.tracking.StaysInScope, WatchFails: l.tracking.WatchFails,
		PausedAt: opts.PausedAt, UnreadPausePeriod: opts.UnreadPausePeriod, Jobs: opts.Jobs, Log: with.log,
	})
	return l
}

// join prepares the metrics for a kind whose workloads are handled from now on.
func (l *loop) join(kind workload.Kind) {
	l.actions.Join(kind)
	l.events.Join(kind)
}

// reconcileLimit is how long the reconciliation of one workload may take; what is not done by then is tried again.
const reconcileLimit = time.Minute

// onEveryReplica is a part that does not wait until this process leads.
type onEveryReplica func(context.Context) error

var _ manager.LeaderElectionRunnable = onEveryReplica(nil)

func (run onEveryReplica) Start(ctx context.Context) error { return run(ctx) }

// NeedLeaderElection is false.
func (onEveryReplica) NeedLeaderElection() bool { return false }

// SetupWithManager registers the loop. It runs on the leader. Its watches, and the re-checks of those that fail, run on every replica, so
// that a standby has synced caches.
func SetupWithManager(mgr manager.Manager, deps Dependencies, opts Options) error {
	log := mgr.GetLogger().WithName("reload")
	l := newLoop(loopDependencies{
		Dependencies: deps, mapper: deps.API, cache: mgr.GetCache(), client: deps.API, apiReader: deps.API,
		log: log,
	}, opts)
	deps.Reread(l.tracking.Reindex)
	warmup := true
	c, err := controller.NewTyped("reload", mgr, controller.TypedOptions[workload.Key]{
		Reconciler:              l,
		MaxConcurrentReconciles: opts.Workers + action.MaxWrites,
		EnableWarmup:            &warmup,
		// A dead connection must not hold a worker for as long as TCP would.
		ReconciliationTimeout: reconcileLimit,
	})
	if err != nil {
		return err
	}
	for _, run := range []manager.Runnable{
		manager.RunnableFunc(func(ctx context.Context) error {
			return l.events.CatchUp(ctx, deps.EventList, opts.Scope.Namespaces, l.queueAgain)
		}),
		manager.RunnableFunc(l.lead),
		onEveryReplica(l.tracking.Recheck),
	} {
		if err := mgr.Add(run); err != nil {
			return err
		}
	}
	return l.watch(c)
}

// watch registers the sources of the queue.
func (l *loop) watch(c controller.TypedController[workload.Key]) error {
	l.store.OnEvent(l.tracking.ConfigChanged)
	l.keys.OnChange(l.tracking.QueueAll)
	for _, source := range l.tracking.Sources(l.kinds) {
		if err := c.Watch(source); err != nil {
			return err
		}
	}
	return nil
}

// queueAgain queues workloads whose reloads may not be reported yet.
func (l *loop) queueAgain(keys ...workload.Key) { l.queue.Add(queue.Workload, keys...) }

// lead runs once this process is the leader: every workload is queued, and from then on all that happens. A standby queues
// nothing, since nothing takes items out of its queue, however many workloads come and go. The manager begins this before the sources of
// the controller have started, or after. A Job that is to be created again is in no index: it is queued here or not at all.
func (l *loop) lead(ctx context.Context) error {
	if l.queue.WaitUntilOpen(ctx) != nil {
		return nil // the context has ended
	}
	l.state.Changes.BecomeLeader()
	l.leads.Begin(l.now())
	l.tracking.QueueAll()
	var resuming sync.WaitGroup
	defer resuming.Wait()
	resuming.Go(func() { l.resumeRecreations(ctx) })
	l.queue.Raise(ctx)
	return nil
}

// resumeRecreations resumes them twice: a former leader that was frozen can store a manifest and delete its Job until its reconciliation
// has taken the time that it may take.
func (l *loop) resumeRecreations(ctx context.Context) {
	l.actions.ResumeRecreations(ctx)
	select {
	case <-ctx.Done():
	case <-time.After(reconcileLimit):
		l.actions.ResumeRecreations(ctx)
	}
}
