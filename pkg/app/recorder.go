package app

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
)

const (
	// eventLife is how long an Event is worth writing: what lasts is reported again after that.
	eventLife = blindAgain
	// recorderLogs is the least time between two lines about Events that cannot be written.
	recorderLogs = time.Minute
)

// recorder writes the Events that are not about workloads: about the installation, its configuration and custom resources. client-go has
// one that drops what is refused. Here the leader goes on trying: what keeps the program from watching may keep it from writing Events
// as well, for as long as an operator needs to mend the rights. It is safe for concurrent use.
type recorder struct {
	put      func(outbox.Message)
	scheme   *runtime.Scheme
	instance string
	now      func() time.Time
	log      logr.Logger
	// logged is when a failed write was logged, in nanoseconds.
	logged atomic.Int64
}

var _ events.EventRecorder = (*recorder)(nil)

// Eventf takes an Event to be written. Each call is an Event of its own, with a name that no other one has.
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) { //nolint:revive // the interface has them
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.log.Error(err, "Cannot name what an Event is about", "reason", reason)
		return
	}
	m := event.Message{
		Type: eventType, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...), Regarding: *about, Time: r.now(), Instance: r.instance,
	}
	if related != nil {
		if m.Related, err = reference.GetReference(r.scheme, related); err != nil {
			r.log.Error(err, "Cannot name what an Event is related to", "reason", reason)
		}
	}
	e := m.Event(event.Name(about.Name, about.Kind, string(about.UID), reason, action, m.Time.Format(time.RFC3339Nano)))
	if e.Namespace == "" { // about an object without a namespace
		e.Namespace = metav1.NamespaceDefault
	}
	r.put(outbox.Message{Event: e, Subject: about.Kind + " " + about.Namespace + "/" + about.Name, Life: eventLife, Failed: r.failed})
}

// failed logs that an Event cannot be written, now and then.
func (r *recorder) failed(err error) {
	now := r.now().UnixNano()
	if last := r.logged.Load(); last != 0 && now-last < int64(recorderLogs) || !r.logged.CompareAndSwap(last, now) {
		return
	}
	r.log.Info("Cannot write an Event; retrying", "error", err.Error())
}

// nameProcess gives the process the name that it has in Events: that of the host, and something that no other one of the host has.
func (b *builder) nameProcess() error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this process in Events: %w", err)
	}
	b.instance = event.Controller + "-" + host + "-" + rand.String(5)
	return nil
}

// buildEvents adds what writes the Events that are not about workloads to the manager.
func (b *builder) buildEvents(mgr manager.Manager) (err error) {
	if b.eventClient, err = outbox.NewClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return err
	}
	out := outbox.New(b.eventClient)
	b.events = &recorder{
		put: out.Put, scheme: mgr.GetScheme(), instance: b.instance, now: b.host.Now, log: b.log.WithName("events"),
	}
	return mgr.Add(manager.RunnableFunc(out.Start))
}
