package reload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

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
