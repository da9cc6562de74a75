package reload

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// The reasons of the Events on workloads; those of failures stand where they arise, those of wrong annotations in package
// annotation.
const (
	reasonReloaded = "Reloaded"
	reasonHeld     = "ReloadHeld"
	reasonMissing  = "ConfigMissing"
	reasonAdopted  = "RecordAdopted"
	reasonNoRoom   = "RecordTooLarge"
	reasonNewer    = "RecordOfNewerVersion"
	reasonLost     = "StampLost"
	reasonProblems = "InvalidAnnotation"
)

// action is what an Event of this program says was done, or failed.
const action = "Reload"

// sender writes Events; outbox.Outbox is one.
type sender interface {
	Put(m outbox.Message)
}

// writeEvents adds what writes Events to the manager. It runs on the leader, and stops with it.
func (l *loop) writeEvents(mgr manager.Manager, reg prometheus.Registerer) error {
	api, err := outbox.NewClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this process in Events: %w", err)
	}
	out := outbox.New(api)
	l.events, l.lister, l.instance = out, api, event.Controller+"-"+host
	watchOutbox(reg, out.Waiting)
	return errors.Join(mgr.Add(manager.RunnableFunc(out.Start)), mgr.Add(manager.RunnableFunc(l.report)))
}

// warn writes a Warning Event, unless the text is the last one of its reason. An empty text only forgets.
func (l *loop) warn(s subject, reason, text string, causes ...reference.Ref) {
	delay, news := l.memory.Warn(s.key, reason, text, l.now())
	if !news {
		return
	}
	m := l.message(s, causes)
	m.Type, m.Reason, m.Action, m.Note = corev1.EventTypeWarning, reason, event.Action(action, text), text
	l.events.Put(outbox.Message{
		Event:   m.Event(event.Name(s.key.Name, s.key.Kind, s.object.UID(), reason, text)),
		Subject: s.key.String(),
		Topic:   reason,
		Delay:   delay,
		Life:    warnAgain,
		Repeat:  true,
		Valid:   func() bool { return l.memory.IsWarned(s.key, reason, text) },
		Failed:  l.eventFailed,
	})
}

// message returns what all Events about a workload have in common.
func (l *loop) message(s subject, causes []reference.Ref) event.Message {
	kind := s.object.Kind.GroupVersionKind
	version, kindName := kind.ToAPIVersionAndKind()
	return event.Message{
		Regarding: corev1.ObjectReference{
			APIVersion: version, Kind: kindName, Namespace: s.key.Namespace, Name: s.key.Name, UID: types.UID(s.object.UID()),
		},
		Related:  related(s.key.Namespace, causes),
		Time:     l.now(),
		Instance: l.instance,
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
	ref := &corev1.ObjectReference{APIVersion: "v1", Namespace: namespace, Name: causes[0].Name}
	switch causes[0].Kind {
	case reference.ConfigMap:
		ref.Kind = "ConfigMap"
	case reference.Secret:
		ref.Kind = "Secret"
	default:
		return nil
	}
	return ref
}

// eventLogEvery is how often a failed write of an Event is logged; the metric counts each one.
const eventLogEvery = time.Minute

// eventFailed reports that an Event could not be written. The outbox tries again.
func (l *loop) eventFailed(err error) {
	l.metrics.eventFailed(err)
	now := l.now().UnixNano()
	last := l.eventLog.Load()
	if last != 0 && now-last < int64(eventLogEvery) || !l.eventLog.CompareAndSwap(last, now) {
		return
	}
	l.log.Info("Cannot write an Event; trying again. Others may fail, too", "error", err.Error())
}
