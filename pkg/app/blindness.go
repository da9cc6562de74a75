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
	// blindLook is how often the health of the watches is looked at.
	blindLook = 10 * time.Second
	// blindPatience is how long a watch must fail to be reported: an API server that restarts is back by then, and the
	// informers, which pause for up to a minute, have tried again.
	blindPatience = 90 * time.Second
	// blindPause is the least time between two Events, blindAgain when the same is reported again: the API server keeps Events
	// for an hour by default.
	blindPause, blindAgain = time.Minute, 50 * time.Minute
	// blindNamed is how many watches an Event names.
	blindNamed = 6
	// ownReadLimit bounds a read of the installation's Deployment, or of the Events about it.
	ownReadLimit = 5 * time.Second
)

// blindness reports watches that fail: in the log of every replica, and in Events of the leader on the installation's own
// Deployment.
type blindness struct {
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

var _ manager.LeaderElectionRunnable = (*blindness)(nil)

// NeedLeaderElection is false: a standby that is blind has a log, too.
func (b *blindness) NeedLeaderElection() bool { return false }

// Start looks until the context ends.
func (b *blindness) Start(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) { b.look(ctx, time.Now()) }, blindLook)
	return nil
}

// look reports what has changed.
func (b *blindness) look(ctx context.Context, now time.Time) {
	var failing []watchhealth.Status
	statuses := b.statuses()
	for _, s := range statuses {
		if !s.Healthy() && now.Sub(s.Since) >= blindPatience {
			failing = append(failing, s)
		}
	}
	what := summary(failing)
	if what != b.logged {
		b.logged = what
		b.write(failing)
	}
	if !b.leads() {
		return
	}
	b.inherit(ctx, statuses)
	if b.due(what, now) {
		b.reported, b.reportedAt = what, now
		b.predecessor.close()
		b.emit(ctx, failing)
	}
}

// inherit takes the report of an earlier leader that watches fail for an own one, once all watches work: nothing else ends it, and
// `pod-reloader why` repeats it.
func (b *blindness) inherit(ctx context.Context, statuses []watchhealth.Status) {
	unhealthy := func(s watchhealth.Status) bool { return !s.Healthy() }
	if len(statuses) == 0 || slices.ContainsFunc(statuses, unhealthy) {
		return
	}
	if b.predecessor.reportedFailing(ctx, b.log) {
		b.reported = "watches of an earlier leader"
	}
}

// due reports whether an Event is due.
func (b *blindness) due(what string, now time.Time) bool {
	since := now.Sub(b.reportedAt)
	if what == b.reported {
		return what != "" && since >= blindAgain
	}
	return what == "" || since >= blindPause
}

func (b *blindness) write(failing []watchhealth.Status) {
	if len(failing) == 0 {
		b.log.Info("all watches work again")
	}
	for _, s := range failing {
		b.log.Info("a watch fails: changes do not arrive", "resource", s.Resource, "namespace", s.Namespace,
			"since", s.Since.UTC().Format(time.RFC3339), "reason", s.Reason, "detail", s.Detail)
	}
}

func (b *blindness) emit(ctx context.Context, failing []watchhealth.Status) {
	regarding := b.regarding(ctx)
	if len(failing) == 0 {
		note := "all watches work again: changes arrive at once"
		b.recorder.Eventf(regarding, nil, corev1.EventTypeNormal, watchhealth.EventRecovered, event.Action("Watch", b.reportedAt.String()), "%s", note)
		return
	}
	note := event.Note(blindNote(failing))
	b.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, watchhealth.EventFailing, event.Action("Watch", note), "%s", note)
}

// summary says which watches fail for which reason, so that two such states can be compared.
func summary(failing []watchhealth.Status) string {
	var b strings.Builder
	for _, s := range failing {
		fmt.Fprintf(&b, "%s %s\n", s.Watch, s.Reason)
	}
	return b.String()
}

func blindNote(failing []watchhealth.Status) string {
	return "watches fail: changes are found late, by periodic reads of the tracked objects: " +
		reference.Clauses(failing, blindNamed, func(s watchhealth.Status) string {
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

// buildBlindness adds what reports failing watches to the manager.
func (b *builder) buildBlindness(mgr manager.Manager) error {
	b.registry.MustRegister(newWatchMetrics(b.watches))
	return mgr.Add(&blindness{
		statuses:  b.watches.Statuses,
		leads:     elected(mgr),
		recorder:  b.events,
		regarding: ownDeployment(mgr.GetAPIReader(), b.options.Namespace, b.options.Installation),
		predecessor: predecessor{failing: lastReport(
			b.eventClient, b.options.Namespace, b.options.Installation, watchhealth.EventFailing, watchhealth.EventRecovered)},
		log: b.log.WithName("watches"),
	})
}
