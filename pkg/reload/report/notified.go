package report

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// AcceptsNotified reports whether EmitNotified may be called for a workload. It is asked before the Record is written.
func (r *Reporter) AcceptsNotified(s Subject) bool { return r.with.Alerts.Accepts(s.Key.Namespace) }

// EmitNotified offers the notification about a Change, and sends an Event. The Record that was written names both.
func (r *Reporter) EmitNotified(s Subject, changes []policy.Change, recorded string) {
	change := policy.NewLastReload(changes, r.with.Now(), "")
	var causes []reference.Ref
	for _, c := range changes {
		causes = append(causes, c.Ref)
	}
	notification := alertAbout(s, change, "")
	notification.NotReloaded = true
	r.with.Alerts.Offer(notification)
	r.inform(s, ReasonNotified, recorded, sentence(change, "posted to --webhook-url, not reloaded"), causes...)
}

// EmitResumed sends the Event about the end of a pause. Its begin may be written by hand: the text names an earlier time only.
func (r *Reporter) EmitResumed(s Subject, since string) {
	text := "resumed: the pause is over, and updates of the pod template"
	if begun, err := time.Parse(time.RFC3339, since); err == nil && !begun.After(r.with.Now()) {
		text += " since " + since
	}
	r.inform(s, reasonResumed, since, text+" roll out")
}

// EmitRunPostponed sends the Event about a run that waits for other Jobs. job is the Job to be made when the wait began.
func (r *Reporter) EmitRunPostponed(s Subject, job, text string) {
	r.inform(s, reasonRunPostponed, job, text)
}

// inform sends a Normal Event. It has the same name for the same identity, whichever process sends it.
func (r *Reporter) inform(s Subject, reason, identity, text string, causes ...reference.Ref) {
	m := r.message(s, causes)
	m.Type, m.Reason, m.Action, m.Note = corev1.EventTypeNormal, reason, action, text
	r.with.Out.Put(outbox.Message{
		Event:   m.Event(event.Name(s.Key.Name, s.Object.UID(), reason, identity)),
		Subject: s.Key.String(),
		Life:    reportedFor,
	})
}
