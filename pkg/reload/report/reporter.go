package report

import (
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/alert"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The reasons of the Events about what was done. Those of Warning Events are defined where they arise.
const (
	reasonReloaded     = "Reloaded"
	reasonResumed      = "Resumed"
	reasonRunPostponed = "RunPostponed"
	// ReasonNotified is that of a change that was reported instead of a reload.
	ReasonNotified = "ChangeNotified"
)

// action is what an Event of this program says was done, or failed.
const action = "Reload"

// Sender writes Events; outbox.Outbox is one.
type Sender interface {
	Put(m outbox.Message)
}

// Alerts takes each reload that is reported; alert.Notifier is one. Offer does not block. It drops what is not accepted, but not the
// notification about a Change, for which Accepts was asked before.
type Alerts interface {
	Accepts(namespace string) bool
	Offer(r alert.Reload)
}

// Options are what a Reporter works with.
type Options struct {
	Out Sender
	// Alerts is nil where nothing takes them.
	Alerts Alerts
	// Instance names this process in Events.
	Instance string
	// Leads says which reloads were made while this process leads.
	Leads *queue.Leadership
	// State has which Events were sent.
	State *state.State
	// Metrics is where reloads are counted; CountByNamespace counts them by namespace, too: a label whose values have no bound.
	Metrics          prometheus.Registerer
	CountByNamespace bool
	Now              func() time.Time
	Log              logr.Logger
}

// Reporter emits the Events about workloads. It is safe for concurrent use.
type Reporter struct {
	with    Options
	metrics *metrics
	catchUp catchUp
}

// New returns a Reporter that has reported nothing.
func New(o Options) *Reporter {
	if o.Alerts == nil {
		o.Alerts = noAlerts{}
	}
	return &Reporter{with: o, metrics: newMetrics(o.Metrics, o.CountByNamespace)}
}

// Join prepares the metrics for a kind whose workloads are handled from now on.
func (r *Reporter) Join(kind workload.Kind) { r.metrics.join(kind) }

// Warn writes a Warning Event, unless the text is the last one of its reason. An empty text only forgets. What was reported holds, and
// is written, until the caller reports another text.
func (r *Reporter) Warn(s Subject, reason, text string, causes ...reference.Ref) {
	if delay, news := r.with.State.Warnings.Warn(s.Key, reason, text, r.with.Now()); news {
		r.warn(s, reason, text, delay, causes)
	}
}

// Clear forgets what was reported last for a reason: the same text is an Event again when it comes back.
func (r *Reporter) Clear(s Subject, reason string) { r.Warn(s, reason, "") }

// Fail is Warn of a failure, which the first success takes back.
func (r *Reporter) Fail(s Subject, reason, text string, causes ...reference.Ref) {
	if delay, news := r.with.State.Warnings.Fail(s.Key, reason, text, r.with.Now()); news {
		r.warn(s, reason, text, delay, causes)
	}
}

func (r *Reporter) warn(s Subject, reason, text string, delay time.Duration, causes []reference.Ref) {
	m := r.message(s, causes)
	m.Type, m.Reason, m.Action, m.Note = corev1.EventTypeWarning, reason, event.Action(action, text), text
	key, sum := s.Key, state.DigestOf(text) // many messages may wait for long: they keep neither the workload nor the whole text
	r.with.Out.Put(outbox.Message{
		Event:   m.Event(event.Name(s.Key.Name, s.Key.Kind, s.Object.UID(), reason, text)),
		Subject: s.Key.String(),
		Topic:   reason,
		Delay:   delay,
		Life:    state.WarnAgain,
		Repeat:  true,
		Valid:   func() bool { return r.with.State.Warnings.IsWarned(key, reason, sum) },
	})
}

// message returns what all Events about a workload have in common.
func (r *Reporter) message(s Subject, causes []reference.Ref) event.Message {
	kind := s.Object.Kind.GroupVersionKind
	version, kindName := kind.ToAPIVersionAndKind()
	return event.Message{
		Regarding: corev1.ObjectReference{
			APIVersion: version, Kind: kindName, Namespace: s.Key.Namespace, Name: s.Key.Name, UID: types.UID(s.Object.UID()),
		},
		Related:  related(s.Key.Namespace, causes),
		Time:     r.with.Now(),
		Instance: r.with.Instance,
	}
}

// eventName returns the name of the Event of a reload: any process that reports this reload gives it this name. If the time of a reload
// is not stored, each process that finds it, and each attempt while the watch is behind, would give it another one: the generation
// that was reloaded is the same for all.
func eventName(s Subject, last record.LastReload) string {
	if s.Unwritten && last.Generation != 0 {
		return event.Name(s.Key.Name, s.Object.UID(), "generation", strconv.FormatInt(last.Generation, 10), last.Hash)
	}
	return event.Name(s.Key.Name, s.Object.UID(), strconv.FormatInt(last.Time.UnixMilli(), 10), last.Hash)
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
