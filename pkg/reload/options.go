package reload

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/pattern"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/action"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/tracking"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Options configure the loop. The zero values of the durations switch the gates off.
type Options struct {
	// Instance names this process in Events, and no other one of the same host.
	Instance string
	// Kinds of workloads, which may come and go. Those whose template cannot change (CreateOnly) are followed as Jobs says.
	Kinds tracking.Kinds
	// Jobs says how Jobs are created again.
	Jobs action.Jobs
	// Reader reads the annotations of workloads.
	Reader stamp.Reader
	// Scope has the workloads that are handled.
	Scope scope.Scope
	// Settle is how long configuration must be quiet before a reload; SettleMax bounds the wait.
	Settle, SettleMax time.Duration
	// Refractory is the shortest time between two reloads of one workload.
	Refractory time.Duration
	// Settings are those that the webhook decides by. With NotifyOnly, Alerts gets the Changes.
	stamp.Settings
	// WithoutRuns leaves CronJobs to their next run, whatever their annotations ask for.
	WithoutRuns bool
	// PausedAt is the annotation with the begin of a pause of ours; empty if there are none.
	PausedAt string
	// UnreadPausePeriod is the annotation with the period of a pause where no dialect reads it; empty if one does. Pauses are only ended then.
	UnreadPausePeriod string
	// Webhook means that an admission webhook of ours is meant to answer; without it the loop stamps by itself.
	Webhook bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Workers is the number of workloads treated at the same time besides those whose write is in flight, at least 1. The
	// more there are, the more of them share the reads of an object that they depend on.
	Workers int
	// CountByNamespace counts reloads by namespace, too: a label whose values have no bound.
	CountByNamespace bool
}

// Store gives the state of config objects; chain.Store is one.
type Store interface {
	gather.Store
	tracking.Store
	OnEvent(func(configstate.Event))
	WaitForSync(ctx context.Context) error
}

// Keys gives the digest keys; keyring.Keyring is one.
type Keys interface {
	gather.Keys
	// OnChange registers a function that is called after each change of the ring.
	OnChange(changed func())
}

// API reads and writes objects live, and knows the resources of their kinds as they are now.
type API interface {
	client.Reader
	action.Client
	tracking.Mapper
}

// Dependencies are the parts that the loop works with, besides those of the manager.
type Dependencies struct {
	API   API
	Store Store
	Keys  Keys
	// Watches is nil where all watches work, as in tests.
	Watches tracking.Watches
	Metrics prometheus.Registerer
	// Events writes Events, and EventList has those of earlier leaders.
	Events    report.Sender
	EventList report.EventLister
	// Past returns the state that a config object, but no custom resource, had at a resourceVersion; configstate.Store.At does. nil where
	// old versions cannot be read.
	Past func(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error)
	// Alerts is nil where nothing takes them.
	Alerts report.Alerts
	// Patterns is the index of the patterns of workloads, which the loop fills. nil where no dialect has any.
	Patterns *pattern.Index[workload.Key]
	// Reread registers a function that reads all workloads again. It is called when their annotations, labels or owners have another
	// meaning than before, or when the state of tracked custom resources changes without an event.
	Reread func(reread func())
	// Retry asks the API server again for what it has refused of custom resources that a workload of a namespace tracks, and returns at
	// once. Not called where there are no custom resources.
	Retry func(namespace string, refs []reference.Ref)
	// Workloads returns those of a kind. changed is called for each workload that comes, changes or goes, while they are followed. For
	// one that comes, before has nothing kept; for one that goes, after has nothing kept.
	Workloads func(kind workload.Kind, changed func(before, after workload.Summary, listed string)) tracking.Workloads
	// Summary returns what Workloads keep of one; nil where they keep all, as in tests.
	Summary func(workload.Object) workload.Summary
}
