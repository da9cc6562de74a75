package reload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/event"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The reasons of the Events on workloads that tell of the course of things; those of failures stand where they arise,
// those of wrong annotations in package annotation.
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

// warn sends a Warning unless the same was the last to be told for its reason, not long ago. An empty text only forgets.
func (l *loop) warn(s subject, reason, text string, causes ...reference.Ref) {
	if l.memory.Tell(s.key, reason, text, l.now()) {
		l.send(s, message{eventType: corev1.EventTypeWarning, reason: reason, action: event.Action(action, text), text: text, causes: causes})
	}
}

// message is what an Event tells of a workload.
type message struct {
	eventType, reason, action, text string
	// causes are the config objects that it is about, if any.
	causes []reference.Ref
}

func (l *loop) send(s subject, m message) {
	l.recorder.Eventf(&unstructured.Unstructured{Object: s.object.Raw}, related(s.key.Namespace, m.causes),
		m.eventType, m.reason, m.action, "%s", event.Note(m.text))
}

// action is what an Event of this program says was done, or failed.
const action = "Reload"

// related is the config object that an Event is about, next to the workload. One that is about several names them in its
// text only, since the API has room for one.
func related(namespace string, causes []reference.Ref) runtime.Object {
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

// complain tells what the user got wrong, and which tracked objects do not exist.
func (l *loop) complain(ctx context.Context, s subject, current map[reference.Ref]digest.State) {
	var wrong []string
	for _, p := range s.problems {
		wrong = append(wrong, p.Message)
	}
	l.warn(s, reasonProblems, strings.Join(wrong, "; "))
	absent := slices.DeleteFunc(s.refs(), func(ref reference.Ref) bool { return !current[ref].Absent })
	if l.memory.News(s.key, reasonMissing, missing(absent), l.now()) {
		absent = l.absent(ctx, s, absent)
	}
	l.warn(s, reasonMissing, missing(absent), absent...)
}

// mostMissing is how many missing objects an Event names; a list may have thousands.
const mostMissing = 8

// missing says that objects do not exist; nothing, if none is named.
func missing(refs []reference.Ref) string {
	if len(refs) == 0 {
		return ""
	}
	var names []string
	for _, ref := range refs[:min(len(refs), mostMissing)] {
		names = append(names, ref.String())
	}
	text := "not found in this namespace: " + strings.Join(names, ", ")
	if more := len(refs) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "; check the name, or create it"
}

// hold tells why a reload that is due is not made.
func (l *loop) hold(ctx context.Context, s subject, verdict policy.Verdict) {
	l.metrics.verdict(verdict)
	if verdict.Action != policy.Hold {
		l.warn(s, reasonHeld, "")
		return
	}
	text := "reload held: " + verdict.Reason
	var gone []reference.Ref
	for _, c := range verdict.Changes {
		gone = append(gone, c.Ref)
	}
	if l.memory.News(s.key, reasonHeld, text, l.now()) && len(l.absent(ctx, s, gone)) < len(gone) {
		return
	}
	l.warn(s, reasonHeld, text, gone...)
}

// absent returns those of some Refs that do not exist according to the API server itself. A workload may come to the caches
// earlier than an object that was created before it: nobody should be told that it is missing. When it comes, the workload
// is looked at again.
func (l *loop) absent(ctx context.Context, s subject, refs []reference.Ref) []reference.Ref {
	states, err := l.store.Live(ctx, s.key.Namespace, refs)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not look again for what is missing", "workload", s.key, "error", err.Error())
	}
	return slices.DeleteFunc(refs, func(ref reference.Ref) bool {
		state, known := states[ref]
		return known && !state.Absent
	})
}

// reportLostKey says that what was recorded under a lost key was adopted anew.
func (l *loop) reportLostKey(s subject, verdict policy.Verdict) {
	if verdict.Foreign != "" {
		l.warn(s, reasonAdopted, fmt.Sprintf(
			"the recorded digests were made with the key %s, which is gone: the present configuration is taken as the running one", verdict.Foreign))
	}
}

// missStamp tells where a reload of ours has left no trace on the pod template: then it has restarted no pod either.
func (l *loop) missStamp(s subject) {
	if s.view.Marks[stamp.Hash] == "" && l.memory.IsStamped(s.key, s.object.Generation()) {
		l.warn(s, reasonLost, lost(s.object.Kind).Error())
	}
}

// lost says why a stamp can be made and not be there.
func lost(kind workload.Kind) error {
	return fmt.Errorf("the pods are not restarted: what was stamped on the pod template at %[1]s is not stored; "+
		"a schema of %[2]s that does not know metadata.annotations there drops them: declare them, "+
		"or set x-kubernetes-preserve-unknown-fields", strings.Join(kind.Template, "."), kind.Kind)
}

// announce tells of a reload that the workload bears witness to, whoever asked for it.
func (l *loop) announce(s subject) {
	since := l.leads.Load()
	if last, ok := s.view.Marks.LastReload(l.now()); ok {
		l.report(s, last, s.view.Marks[stamp.LastReload], since != nil && !last.Time.Before(*since))
	}
}

// report sends the Event and counts the reload, once for each.
func (l *loop) report(s subject, last record.LastReload, text string, fresh bool) {
	if !l.memory.Announce(s.key, text, fresh, l.now()) {
		return
	}
	l.metrics.reloaded(s.object.Kind, last)
	var causes []reference.Ref
	for _, c := range last.Changes {
		ref, _ := reference.Parse(c.Ref) // what cannot be read is no object, but counts as a cause
		causes = append(causes, ref)
	}
	// Each reload is a new version of the workload, so none is counted on the Event of another.
	l.send(s, message{
		eventType: corev1.EventTypeNormal, reason: reasonReloaded, action: action, text: sentence(last, s.object.Pending()), causes: causes,
	})
}

// sentence explains a reload in words.
func sentence(last record.LastReload, pending string) string {
	var b strings.Builder
	b.WriteString("stamped")
	if pending != "" {
		b.WriteString(", rollout pending (" + pending + ")")
	}
	switch causes := describe(last); {
	case causes != "":
		b.WriteString(": " + causes)
	case last.Cause == record.CauseVerifiedReload:
		b.WriteString(": a client asked for it with a verified digest")
	case last.Cause == record.CauseListEdit:
		b.WriteString(": the list of config objects was edited")
	}
	if last.Cause == record.CauseRelease {
		b.WriteString(", together with a change of the pod template")
	}
	return b.String()
}

func describe(last record.LastReload) string {
	var parts []string
	for _, c := range last.Changes {
		parts = append(parts, c.Ref+" "+c.Type)
	}
	if last.More > 0 {
		parts = append(parts, fmt.Sprintf("%d more", last.More))
	}
	return strings.Join(parts, ", ")
}

// causeKinds returns the kind of config object that caused a reload, or the cause where no object changed, as a label for
// metrics. It is bounded, whatever somebody wrote into the annotation.
func causeKinds(last record.LastReload) string {
	label := last.Cause
	for i, c := range last.Changes {
		kind, _, _ := strings.Cut(c.Ref, "/")
		if i > 0 && kind != label {
			return "several"
		}
		label = kind
	}
	if !slices.Contains(causeLabels(), label) {
		return "other"
	}
	return label
}

func causeLabels() []string {
	return []string{
		string(reference.ConfigMap), string(reference.Secret), string(policy.Any.Kind),
		record.CauseConfigChange, record.CauseVerifiedReload, record.CauseListEdit, record.CauseRelease,
	}
}
