package chain

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// notifier calls the handlers of a Chain when answers about custom resources may be others than before.
type notifier struct {
	// handlers are called for changes of custom resources, rereaders when what the configuration says is in force.
	handlers  []func(configstate.Event)
	rereaders []func()
	// isHeld reports whether a node is held still.
	isHeld func(referent.Key) bool
	now    func() time.Time
}

// reread has the loop look at its workloads once more: what it has asked for may be in no graph, and then no change of one names it.
func (n *notifier) reread() {
	for _, handler := range n.rereaders {
		handler()
	}
}

// report calls the handlers for each custom resource that has changed, and once more for those that are still held when that
// is to be reported.
func (n *notifier) report(changes []referent.Change) {
	var late []referent.Key
	for _, change := range changes {
		if change.Held {
			late = append(late, change.Key)
		}
		n.notify(change.Key)
	}
	n.reportLate(late)
}

func (n *notifier) reportLate(late []referent.Key) {
	if len(late) == 0 {
		return
	}
	time.AfterFunc(digest.ReportHoldAfter, func() {
		for _, key := range late {
			if n.isHeld(key) {
				n.notify(key)
			}
		}
	})
}

// notify calls the handlers for one custom resource.
func (n *notifier) notify(key referent.Key) {
	if _, config := key.Ref(); config || key.Group == "" {
		return
	}
	ref := reference.Ref{Kind: reference.CustomKind(key.GroupResource()), Name: key.Name}
	for _, handler := range n.handlers {
		handler(configstate.Event{Namespace: key.Namespace, Ref: ref, Type: configstate.Modified, Received: n.now()})
	}
}
