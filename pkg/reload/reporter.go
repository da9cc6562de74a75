package reload

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
)

// The reasons of the Events on workloads; those of failures are defined where they arise, those of wrong annotations in package
// annotation.
const (
	reasonReloaded = "Reloaded"
	reasonHeld     = "ReloadHeld"
	reasonMissing  = "ConfigMissing"

	reasonReferentHeld = "ReferentHeld"
	reasonAdopted      = "RecordAdopted"
	reasonNoRoom       = "RecordTooLarge"
	reasonNewer        = "RecordOfNewerVersion"
	reasonLost         = "StampLost"
	reasonProblems     = "InvalidAnnotation"
)

// action is what an Event of this program says was done, or failed.
const action = "Reload"

// sender writes Events; outbox.Outbox is one.
type sender interface {
	Put(m outbox.Message)
}

// reporter emits the Events about workloads. It is safe for concurrent use.
type reporter struct {
	out    sender
	alerts Alerts
	// instance names this process.
	instance string
	catchUp  *catchUp
	leads    *queue.Leadership
	state    *state.State
	metrics  *metrics
	now      func() time.Time
	log      logr.Logger
	// logged is when a failed write of an Event was logged, in nanoseconds.
	logged atomic.Int64
}

// warn writes a Warning Event, unless the text is the last one of its reason. An empty text only forgets.
func (r *reporter) warn(s subject, reason, text string, causes ...reference.Ref) {
	delay, news := r.state.Warnings.Warn(s.key, reason, text, r.now())
	if !news {
		return
	}
	m := r.message(s, causes)
	m.Type, m.Reason, m.Action, m.Note = corev1.EventTypeWarning, reason, event.Action(action, text), text
	r.out.Put(outbox.Message{
		Event:   m.Event(event.Name(s.key.Name, s.key.Kind, s.object.UID(), reason, text)),
		Subject: s.key.String(),
		Topic:   reason,
		Delay:   delay,
		Life:    state.WarnAgain,
		Repeat:  true,
		Valid:   func() bool { return r.state.Warnings.IsWarned(s.key, reason, text) },
		Failed:  r.failed,
	})
}

// message returns what all Events about a workload have in common.
func (r *reporter) message(s subject, causes []reference.Ref) event.Message {
	kind := s.object.Kind.GroupVersionKind
	version, kindName := kind.ToAPIVersionAndKind()
	return event.Message{
		Regarding: corev1.ObjectReference{
			APIVersion: version, Kind: kindName, Namespace: s.key.Namespace, Name: s.key.Name, UID: types.UID(s.object.UID()),
		},
		Related:  related(s.key.Namespace, causes),
		Time:     r.now(),
		Instance: r.instance,
	}
}

// eventName returns the name of the Event of a reload: any process that reports this reload gives it this name.
func eventName(s subject, last record.LastReload) string {
	return event.Name(s.key.Name, s.object.UID(), strconv.FormatInt(last.Time.UnixMilli(), 10), last.Hash)
}

// related is the config object that an Event is about, next to the workload. One that is about several names them in its
// text only, since the API has a field for one.
func related(namespace string, causes []reference.Ref) *corev1.ObjectReference {
	if len(causes) != 1 {
		return nil
	}
	gvk, ok := causes[0].Kind.GroupVersionKind()
	if !ok {
		return nil
	}
	version, kind := gvk.ToAPIVersionAndKind()
	return &corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: causes[0].Name}
}

// eventLogEvery is how often a failed write of an Event is logged; the metric counts each one.
const eventLogEvery = time.Minute

// failed reports that an Event could not be written. The outbox tries again.
func (r *reporter) failed(err error) {
	r.metrics.eventFailed(err)
	now := r.now().UnixNano()
	last := r.logged.Load()
	if last != 0 && now-last < int64(eventLogEvery) || !r.logged.CompareAndSwap(last, now) {
		return
	}
	r.log.Info("Cannot write an Event; retrying", "error", err.Error())
}
