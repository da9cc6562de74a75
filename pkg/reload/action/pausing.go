package action

import (
	"context"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// reasonResumeFailed is the reason of the Event about a pause that cannot be ended.
const reasonResumeFailed = "ResumeFailed"

// pausable is one version of a workload.
type pausable interface {
	Annotations() map[string]string
	Paused() bool
}

// pauses begins and ends the pauses of Deployments that reloads ask for.
type pauses struct {
	*base

	// at is the annotation with the begin of a pause of ours; empty if there are none.
	at string
	// unread is the annotation with the period where no dialect reads it; empty if one does.
	unread string
}

// of returns what is known of the pause of a workload.
func (p pauses) of(s gather.Subject, version pausable) pause.State {
	if !s.Object.Kind.Pausable() || p.at == "" {
		return pause.State{}
	}
	since, ours := version.Annotations()[p.at]
	return pause.State{Period: s.View.Intent.PausePeriod, Paused: version.Paused(), Since: since, Ours: ours}
}

// toEnd returns what is known of the pause of a workload that may have to end.
func (p pauses) toEnd(s gather.Subject) pause.State {
	known := p.of(s, s.Object)
	if p.unread == "" {
		return known
	}
	period, there := s.Object.Annotations()[p.unread]
	return known.Unread(annotation.PausePeriod(period), there, s.View.Managed[stamp.LastReload] != "")
}

// end is Actions.EndPause.
func (p pauses) end(ctx context.Context, s gather.Subject) (wait time.Duration, ended Outcome) {
	present := p.toEnd(s)
	action, wait := present.Decide(p.now())
	if action == pause.None {
		p.hasEnded(s)
		return wait, nil
	}
	if p.state.Writes.IsCacheBehind(s.Key, s.Object.Generation(), p.now()) {
		return 0, Waiting(queue.After(time.Second, queue.Workload)) // the cache has not seen our own write yet
	}
	if wait := p.removalContested(ctx, s, p.at, reasonPauseContested, "removes it, and ends the pause,"); wait > 0 {
		return wait, nil // a reload does not wait for it
	}
	end := state.PauseEnd{Action: action, Since: present.Since}
	if wait := p.state.Resumes.Wait(s.Key, end, p.now()); wait > 0 {
		return wait, nil
	}
	if wait := p.WaitToWrite(s); wait > 0 {
		return 0, Waiting(queue.After(wait, queue.Retry))
	}
	if !p.MayWrite(s, inflight.Urgent) {
		return 0, Waiting{} // queued again when it has a slot
	}
	if err := p.resume(ctx, s, action); err != nil {
		if action == pause.Resume && apianswer.MayBeStored(err) {
			p.state.UnansweredEnds.Add(s.Key, present.Since)
		}
		return p.notEnded(ctx, s, end, failedWrite(s.Object.Kind, reasonResumeFailed, err))
	}
	p.backoff.Forget(s.Key)
	p.hasEnded(s)
	return 0, Waiting{}
}

// hasEnded takes back what was reported of a pause that could not be ended: there is none any more, or it is another one. It reports an end
// whose answer was lost, if the workload shows it.
func (p pauses) hasEnded(s gather.Subject) {
	if p.state.Resumes.Ended(s.Key) {
		p.events.Clear(s.Reported(), reasonResumeFailed)
	}
	since, known := p.state.UnansweredEnds.Take(s.Key), p.of(s, s.Object)
	if since != "" && !known.Paused && !known.Ours {
		p.events.EmitResumed(s.Reported(), since)
	}
}

// notEnded is the outcome of an attempt to end a pause that has failed. A reload does not wait for what does not pass by itself: what
// refuses the end of a pause may let a stamp pass.
func (p pauses) notEnded(
	ctx context.Context, s gather.Subject, end state.PauseEnd, f failure,
) (wait time.Duration, ended Outcome) {
	if f.soon {
		p.state.Resumes.Interrupted(s.Key)
		return 0, failed{s, f}
	}
	now := p.now()
	first, wait := p.state.Resumes.Refused(s.Key, end, f.pace(), now)
	p.metrics.failed(f.reason)
	level := 0
	if f.refused && apianswer.MayBeStart(now.Sub(first)) {
		level = 1
	} else {
		p.events.Warn(s.Reported(), f.reason, f.text())
	}
	log.FromContext(ctx).V(level).Info("cannot end the pause; retrying", "workload", s.Key, "error", textOf(f.err), "after", wait)
	return wait, nil
}

// resume removes the annotation of a pause, and the pause itself unless another writer has done so.
func (p pauses) resume(ctx context.Context, s gather.Subject, action pause.Action) error {
	change := map[string]any{"metadata": map[string]any{
		"resourceVersion": s.Object.ResourceVersion(), "annotations": map[string]any{p.at: nil},
	}}
	if action == pause.Resume {
		change["spec"] = map[string]any{"paused": nil}
	}
	answer, err := p.merge(ctx, s, change)
	if err != nil {
		return err
	}
	p.state.Writes.RecordWrite(s.Key, answer.Generation, p.now())
	p.state.Contests.Removed(s.Key, p.at, p.now())
	if action == pause.Resume {
		log.FromContext(ctx).Info("ended the pause", "workload", s.Key, "pausedAt", s.Object.Annotations()[p.at])
		p.events.EmitResumed(s.Reported(), s.Object.Annotations()[p.at])
	}
	return nil
}

// begin returns the change that a reload makes to pause the workload as well, or nil if it does not.
func (p pauses) begin(s gather.Subject) map[string]any {
	if !p.of(s, s.Object).Begins() {
		return nil
	}
	return map[string]any{
		"metadata": map[string]any{
			"resourceVersion": s.Object.ResourceVersion(), "annotations": map[string]any{p.at: p.since()},
		},
		"spec": map[string]any{"paused": true},
	}
}

// revertPause ends the pause that a request began, where no reload came of it: the webhook reads what is stored, and the configuration may
// have changed back. The Deployment would otherwise be paused for the whole period. A pause that another writer has changed stays.
func (p pauses) revertPause(ctx context.Context, s gather.Subject, request poke.Request) {
	begin, paused, err := unstructured.NestedString(request.Further, "metadata", "annotations", p.at)
	if err != nil || !paused {
		return
	}
	since := stamp.Pointer("metadata", "annotations", p.at)
	err = p.operate(ctx, s,
		jsonpatch.NewOperation("test", since, begin), jsonpatch.NewOperation("remove", since, nil),
		jsonpatch.NewOperation("test", pausedField, true), jsonpatch.NewOperation("remove", pausedField, nil),
	)
	if err != nil {
		log.FromContext(ctx).Info("cannot end the pause of a reload request that was refused",
			"workload", s.Key, "error", textOf(err), "remedy", "kubectl rollout resume")
	}
}

// pausedField is the JSON pointer to the pause of a Deployment.
const pausedField = "/spec/paused"

// pausing is a pause that a direct stamp begins.
type pausing struct {
	operations []jsonpatch.Operation
	period     time.Duration
}

// beginDirectly returns the pause that a direct stamp of the stored version begins, if it does.
func (p pauses) beginDirectly(s gather.Subject, version pausable, result stamp.Result) pausing {
	state := p.of(s, version)
	if !result.Stamped || !state.Begins() {
		return pausing{}
	}
	pointer := stamp.Pointer("metadata", "annotations", p.at)
	return pausing{period: state.Period, operations: []jsonpatch.Operation{
		jsonpatch.NewOperation("add", pointer, p.since()),
		jsonpatch.NewOperation("add", pausedField, true),
	}}
}

func (p pauses) since() string { return p.now().UTC().Format(time.RFC3339) }
