package app

import (
	"fmt"
	"os"
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

// eventLife is how long an Event is worth writing: what lasts is reported again after that.
const eventLife = reportAgain

// recorder writes the Events that are not about workloads: about the installation, its configuration and custom resources. client-go has
// one that drops what is refused. Here the leader goes on trying: what keeps the program from watching may keep it from writing Events
// as well, for as long as an operator needs to mend the permissions. It is safe for concurrent use.
type recorder struct {
	put      func(outbox.Message)
	scheme   *runtime.Scheme
	instance string
	now      func() time.Time
	log      logr.Logger
}

var _ events.EventRecorder = (*recorder)(nil)

// Eventf takes an Event to be written. Each call is an Event of its own, with a name that no other one has.
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) { //nolint:revive // the interface has them
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.log.Error(err, "cannot reference the object of an Event", "event", reason)
		return
	}
	m := event.Message{
		Type: eventType, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...), Regarding: *about, Time: r.now(), Instance: r.instance,
	}
	if related != nil {
		if m.Related, err = reference.GetReference(r.scheme, related); err != nil {
			r.log.Error(err, "cannot reference the related object of an Event", "event", reason)
		}
	}
	e := m.Event(event.Name(about.Name, about.Kind, string(about.UID), reason, action, m.Time.Format(time.RFC3339Nano)))
	if e.Namespace == "" { // about an object without a namespace
		e.Namespace = metav1.NamespaceDefault
	}
	r.put(outbox.Message{Event: e, Subject: about.Kind + " " + about.Namespace + "/" + about.Name, Life: eventLife})
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

// buildEvents adds what writes Events to the manager: those about workloads, and those of the recorder.
func (b *builder) buildEvents(mgr manager.Manager) (err error) {
	if b.eventClient, err = outbox.NewClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return err
	}
	log := b.log.WithName("events")
	b.outbox = outbox.New(b.eventClient, b.registry, log)
	b.events = &recorder{put: b.outbox.Put, scheme: mgr.GetScheme(), instance: b.instance, now: b.host.Now, log: log}
	return mgr.Add(manager.RunnableFunc(b.outbox.Start))
}
