package action

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		return p.notEnded(ctx, s, end, failedPin(s.Object.Kind, reasonResumeFailed, err))
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

// pins are the tests by which a patch is stored only on the workload that was decided about, and only while its pause is as it was seen: no
// pause of a user is taken for one of ours. A generation that is not 0 stands for what else a user may have changed.
func (p pauses) pins(s gather.Subject, generation int64) []jsonpatch.Operation {
	since, begun := s.Object.Annotations()[p.at]
	pins := []jsonpatch.Operation{
		jsonpatch.NewOperation("test", "/metadata/uid", s.Object.UID()),
		pin(pausedField, true, s.Object.Paused()),
		pin(stamp.Pointer("metadata", "annotations", p.at), since, begun),
	}
	if generation != 0 {
		pins = append(pins, jsonpatch.NewOperation("test", "/metadata/generation", generation))
	}
	return pins
}

// pin is the test that a field has a value, or that it is absent.
func pin(field string, value any, there bool) jsonpatch.Operation {
	if !there {
		value = json.RawMessage("null")
	}
	return jsonpatch.NewOperation("test", field, value)
}

// generationToPin returns the generation that a write of a workload is for: 0 where another writer raises it all the time.
func (b *base) generationToPin(s gather.Subject) int64 {
	if b.backoff.IsOvertaken(s.Key) {
		return 0
	}
	return s.Object.Generation()
}

// asDecided returns the workload whose pause is to end. A write for each generation would end it whatever a user has changed since the cache has
// seen the workload, such as the period: the workload is then read, and it is a conflict where something else is to be done.
func (p pauses) asDecided(ctx context.Context, s gather.Subject, action pause.Action) (gather.Subject, error) {
	if p.generationToPin(s) == s.Object.Generation() {
		return s, nil
	}
	o, err := p.gather.Stored(ctx, s)
	if err != nil {
		return s, err
	}
	live := p.withObject(s, o)
	again, _ := p.toEnd(live).Decide(p.now())
	if again != action || o.UID() != s.Object.UID() || !p.inScope(ctx, s.Key, o.Labels()) {
		return s, apierrors.NewConflict(schema.GroupResource{Group: s.Object.Kind.Group, Resource: s.Object.Kind.Kind}, s.Key.Name, errOvertaken)
	}
	s.Object, s.View = live.Object, live.View
	return s, nil
}

// resume removes the annotation of a pause, and the pause itself unless another writer has done so.
func (p pauses) resume(ctx context.Context, s gather.Subject, action pause.Action) error {
	s, err := p.asDecided(ctx, s, action)
	if err != nil {
		return err
	}
	operations := append(p.pins(s, p.generationToPin(s)), jsonpatch.NewOperation("remove", stamp.Pointer("metadata", "annotations", p.at), nil))
	if action == pause.Resume {
		operations = append(operations, jsonpatch.NewOperation("remove", pausedField, nil))
	}
	answer, err := p.operate(ctx, s, operations...)
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

// begin returns what a reload request for a generation does to pause the workload as well, or nil if it does not. A request for each generation
// is refused where another reload was faster: that one has begun a rollout, or a pause.
func (p pauses) begin(s gather.Subject, generation int64) []jsonpatch.Operation {
	if !p.of(s, s.Object).Begins() {
		return nil
	}
	last, reloaded := s.View.Managed[stamp.LastReload]
	pins := append(p.pins(s, generation), pin(stamp.Pointer("metadata", "annotations", p.annotations.LastReload), last, reloaded))
	return append(pins, p.beginning()...)
}

// beginning are the operations that begin a pause.
func (p pauses) beginning() []jsonpatch.Operation {
	return []jsonpatch.Operation{
		jsonpatch.NewOperation("add", stamp.Pointer("metadata", "annotations", p.at), p.since()),
		jsonpatch.NewOperation("add", pausedField, true),
	}
}

// revertPause ends the pause that a request began, where no reload came of it: the webhook reads what is stored, and the configuration may
// have changed back. The Deployment would otherwise be paused for the whole period. A pause that another writer has changed stays.
func (p pauses) revertPause(ctx context.Context, s gather.Subject, request poke.Request) {
	since := stamp.Pointer("metadata", "annotations", p.at)
	begin := slices.IndexFunc(request.Further, func(o jsonpatch.Operation) bool { return o.Operation == "add" && o.Path == since })
	if begin < 0 {
		return
	}
	_, err := p.operate(ctx, s,
		jsonpatch.NewOperation("test", since, request.Further[begin].Value), jsonpatch.NewOperation("remove", since, nil),
		jsonpatch.NewOperation("test", pausedField, true), jsonpatch.NewOperation("remove", pausedField, nil),
	)
	if err != nil && !isGone(s.Object.Kind, err) {
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
	return pausing{period: state.Period, operations: p.beginning()}
}

func (p pauses) since() string { return p.now().UTC().Format(time.RFC3339) }
