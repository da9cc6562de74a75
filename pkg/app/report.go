package app

import (
	"context"
	"fmt"
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
)

const (
	// reportAgain is when the same is reported again: the API server keeps Events for an hour by default.
	reportAgain = 50 * time.Minute
	// ownReadLimit bounds a read of the installation's Deployment, or of the Events about it.
	ownReadLimit = 5 * time.Second
)

// installationReport reports what is wrong with the installation: in the log of every replica, and in Events of the leader on the
// installation's own Deployment.
type installationReport struct {
	// look returns what is wrong, at each interval; false if that is not known.
	look     func(ctx context.Context, now time.Time) (finding, bool)
	interval time.Duration
	// pause is the least time between two Events about what is wrong, and between two times that it is logged. failing and ended are the
	// reasons of the Events.
	pause          time.Duration
	failing, ended string
	leads          func() bool
	recorder       events.EventRecorder
	regarding      func(ctx context.Context) *corev1.ObjectReference
	// predecessor is asked whether the last Event about the subject says that something is wrong.
	predecessor predecessor
	log         logr.Logger

	// logged and reported are what was last logged and reported to be wrong, loggedAt and reportedAt are when. The goroutine of Start alone
	// uses them.
	logged, reported     string
	loggedAt, reportedAt time.Time
}

// finding is what is wrong.
type finding struct {
	// what is compared with that of other findings; empty if nothing is wrong. note is the text of the Event.
	what, note string
	// well is set if it is known that nothing is wrong, not even for a short time. That ends the report of an earlier leader: nothing else
	// does, and `pod-reloader why` repeats it.
	well bool
	// write logs it.
	write func()
}

var _ manager.LeaderElectionRunnable = (*installationReport)(nil)

// NeedLeaderElection is false: the same can be wrong with a standby, and it has a log, too.
func (r *installationReport) NeedLeaderElection() bool { return false }

// Start looks until the context ends.
func (r *installationReport) Start(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) { r.check(ctx, time.Now()) }, r.interval)
	return nil
}

// check reports what has changed.
func (r *installationReport) check(ctx context.Context, now time.Time) {
	found, known := r.look(ctx, now)
	if !known {
		return
	}
	if found.what != r.logged && (found.what == "" || now.Sub(r.loggedAt) >= r.pause) {
		r.logged, r.loggedAt = found.what, now
		found.write()
	}
	if !r.leads() {
		return
	}
	if found.well && r.predecessor.reportedFailing(ctx, r.log) {
		r.reported = "of an earlier leader"
	}
	if !r.due(found.what, now) {
		return
	}
	r.reported, r.reportedAt = found.what, now
	r.predecessor.close()
	kind, reason := corev1.EventTypeWarning, r.failing
	if found.what == "" {
		kind, reason = corev1.EventTypeNormal, r.ended
	}
	note := event.Note(found.note)
	r.recorder.Eventf(r.regarding(ctx), nil, kind, reason, event.Action("Watch", fmt.Sprint(note, now)), "%s", note)
}

// due reports whether an Event is due.
func (r *installationReport) due(what string, now time.Time) bool {
	since := now.Sub(r.reportedAt)
	if what == r.reported {
		return what != "" && since >= reportAgain
	}
	return what == "" || since >= r.pause
}

// newReport returns a report to the log and to the Events of this installation.
func (b *builder) newReport(mgr manager.Manager, log, failing, ended string) installationReport {
	return installationReport{
		failing: failing, ended: ended, leads: elected(mgr), recorder: b.events,
		regarding:   ownDeployment(mgr.GetAPIReader(), b.options.Namespace, b.options.Installation),
		predecessor: predecessor{failing: lastReport(b.eventClient, b.options.Namespace, b.options.Installation, failing, ended)},
		log:         b.log.WithName(log),
	}
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
