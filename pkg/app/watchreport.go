package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

const (
	// watchLookInterval is how often the health of the watches is looked at.
	watchLookInterval = 10 * time.Second
	// watchPatience is how long a watch must fail to be reported: an API server that restarts is back by then, and the
	// informers, which pause for up to a minute, have tried again.
	watchPatience = 90 * time.Second
	// watchEventPause is the least time between two Events, reportAgain when the same is reported again: the API server keeps
	// Events for an hour by default.
	watchEventPause, reportAgain = time.Minute, 50 * time.Minute
	// watchesNamed is how many watches an Event names.
	watchesNamed = 6
	// ownReadLimit bounds a read of the installation's Deployment, or of the Events about it.
	ownReadLimit = 5 * time.Second
)

// watchReporter reports watches that fail: in the log of every replica, and in Events of the leader on the installation's own
// Deployment.
type watchReporter struct {
	statuses  func() []watchhealth.Status
	leads     func() bool
	recorder  events.EventRecorder
	regarding func(ctx context.Context) *corev1.ObjectReference
	// predecessor is asked whether the last Event about the watches says that they fail.
	predecessor predecessor
	log         logr.Logger

	// logged and reported are which watches failed for which reason when that was last said; reportedAt is when.
	logged, reported string
	reportedAt       time.Time
}

var _ manager.LeaderElectionRunnable = (*watchReporter)(nil)

// NeedLeaderElection is false: the watches of a standby can fail, and it has a log, too.
func (r *watchReporter) NeedLeaderElection() bool { return false }

// Start looks until the context ends.
func (r *watchReporter) Start(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) { r.checkIfDue(ctx, time.Now()) }, watchLookInterval)
	return nil
}

// checkIfDue reports what has changed.
func (r *watchReporter) checkIfDue(ctx context.Context, now time.Time) {
	var failing []watchhealth.Status
	statuses := r.statuses()
	for _, s := range statuses {
		if !s.Healthy() && now.Sub(s.Since) >= watchPatience {
			failing = append(failing, s)
		}
	}
	what := summary(failing)
	if what != r.logged {
		r.logged = what
		r.write(failing)
	}
	if !r.leads() {
		return
	}
	r.takeOverReport(ctx, statuses)
	if r.due(what, now) {
		r.reported, r.reportedAt = what, now
		r.predecessor.close()
		r.emit(ctx, failing)
	}
}

// takeOverReport takes the report of an earlier leader that watches fail for an own one, once all watches work: nothing else ends it, and
// `pod-reloader why` repeats it.
func (r *watchReporter) takeOverReport(ctx context.Context, statuses []watchhealth.Status) {
	unhealthy := func(s watchhealth.Status) bool { return !s.Healthy() }
	if len(statuses) == 0 || slices.ContainsFunc(statuses, unhealthy) {
		return
	}
	if r.predecessor.reportedFailing(ctx, r.log) {
		r.reported = "watches of an earlier leader"
	}
}

// due reports whether an Event is due.
func (r *watchReporter) due(what string, now time.Time) bool {
	since := now.Sub(r.reportedAt)
	if what == r.reported {
		return what != "" && since >= reportAgain
	}
	return what == "" || since >= watchEventPause
}

func (r *watchReporter) write(failing []watchhealth.Status) {
	if len(failing) == 0 {
		r.log.Info("all watches work again")
	}
	for _, s := range failing {
		r.log.Info("a watch fails: changes do not arrive", "resource", s.Resource, "namespace", s.Namespace,
			"since", s.Since.UTC().Format(time.RFC3339), "reason", s.Reason, "detail", s.Detail)
	}
}

func (r *watchReporter) emit(ctx context.Context, failing []watchhealth.Status) {
	regarding := r.regarding(ctx)
	if len(failing) == 0 {
		note := "all watches work again: changes arrive at once"
		r.recorder.Eventf(regarding, nil, corev1.EventTypeNormal, watchhealth.EventRecovered, event.Action("Watch", r.reportedAt.String()), "%s", note)
		return
	}
	note := event.Note(failingNote(failing))
	r.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, watchhealth.EventFailing, event.Action("Watch", note), "%s", note)
}

// summary says which watches fail for which reason, so that two such states can be compared.
func summary(failing []watchhealth.Status) string {
	var b strings.Builder
	for _, s := range failing {
		fmt.Fprintf(&b, "%s %s\n", s.Watch, s.Reason)
	}
	return b.String()
}

func failingNote(failing []watchhealth.Status) string {
	return "watches fail: changes are found late, by periodic reads of the tracked objects: " +
		reference.Clauses(failing, watchesNamed, func(s watchhealth.Status) string {
			return fmt.Sprintf("%s since %s (%s)", s.Watch, s.Since.UTC().Format(time.RFC3339), s.Detail)
		})
}

// ownDeployment returns what names the installation's Deployment in Events. Its UID is read, since kubectl shows only Events
// that have it; where that fails, the name has to do.
func ownDeployment(reader client.Reader, namespace, name string) func(context.Context) *corev1.ObjectReference {
	return func(ctx context.Context) *corev1.ObjectReference {
		ref := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
		ctx, cancel := context.WithTimeout(ctx, ownReadLimit)
		defer cancel()
		own := &metav1.PartialObjectMetadata{}
		own.SetGroupVersionKind(ref.GroupVersionKind())
		if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, own); err == nil {
			ref.UID = own.UID
		}
		return ref
	}
}

// buildWatchReporter adds what reports failing watches to the manager.
func (b *builder) buildWatchReporter(mgr manager.Manager) error {
	b.registry.MustRegister(newWatchMetrics(b.watches))
	return mgr.Add(&watchReporter{
		statuses:  b.watches.Statuses,
		leads:     elected(mgr),
		recorder:  b.events,
		regarding: ownDeployment(mgr.GetAPIReader(), b.options.Namespace, b.options.Installation),
		predecessor: predecessor{failing: lastReport(
			b.eventClient, b.options.Namespace, b.options.Installation, watchhealth.EventFailing, watchhealth.EventRecovered)},
		log: b.log.WithName("watches"),
	})
}
