package action

import (
	"context"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/poke"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// reasonResumeFailed is the reason of the Event about a pause that cannot be ended.
const reasonResumeFailed = "ResumeFailed"

// pausable is one version of a workload.
type pausable interface {
	Annotations() map[string]string
	Paused() bool
}

// pauseState returns what is known of the pause of a workload.
func (a *Actions) pauseState(s gather.Subject, version pausable) pause.State {
	if !s.Object.Kind.Pausable() || a.pausedAt == "" {
		return pause.State{}
	}
	since, ours := version.Annotations()[a.pausedAt]
	return pause.State{Period: s.View.Intent.PausePeriod, Paused: version.Paused(), Since: since, Ours: ours}
}

// EndPause ends a pause of ours that is over: the watch then brings the workload back. Otherwise it returns how long to wait for the
// end, with no outcome; 0 if there is no pause of ours. The pause of a workload that a label excludes,
// or that asks for nothing any more, ends as well.
func (a *Actions) EndPause(ctx context.Context, s gather.Subject) (wait time.Duration, ended Outcome) {
	state := a.pauseState(s, s.Object)
	action, wait := state.Decide(a.now())
	if action == pause.Leave {
		return wait, nil
	}
	if a.state.Writes.Behind(s.Key, s.Object.Generation(), a.now()) {
		return 0, Waiting(queue.After(time.Second, queue.Workload)) // the cache has not seen our own write yet
	}
	if !a.MayWrite(s, inflight.Urgent) {
		return 0, Waiting{} // queued again when it has a slot
	}
	if err := a.resume(ctx, s, action); err != nil {
		return 0, failed{s, failedWrite(reasonResumeFailed, err)}
	}
	a.backoff.Forget(s.Key)
	a.events.Warn(s.Reported(), reasonResumeFailed, "")
	return 0, Waiting{}
}

// resume removes the annotation of a pause, and the pause itself unless another writer has done so.
func (a *Actions) resume(ctx context.Context, s gather.Subject, action pause.Action) error {
	change := map[string]any{"metadata": map[string]any{
		"resourceVersion": s.Object.ResourceVersion(), "annotations": map[string]any{a.pausedAt: nil},
	}}
	if action == pause.Resume {
		change["spec"] = map[string]any{"paused": nil}
	}
	answer, err := a.merge(ctx, s, change)
	if err != nil {
		return err
	}
	a.state.Writes.Wrote(s.Key, answer.Generation, a.now())
	if action == pause.Resume {
		log.FromContext(ctx).Info("Resumed", "workload", s.Key, "pausedAt", s.Object.Annotations()[a.pausedAt])
		a.events.EmitResumed(s.Reported(), s.Object.Annotations()[a.pausedAt])
	}
	return nil
}

// pausing returns the change that a reload makes to pause the workload as well, or nil if it does not.
func (a *Actions) pausing(s gather.Subject) map[string]any {
	if !a.pauseState(s, s.Object).Begins() {
		return nil
	}
	return map[string]any{
		"metadata": map[string]any{
			"resourceVersion": s.Object.ResourceVersion(), "annotations": map[string]any{a.pausedAt: a.pauseBegin()},
		},
		"spec": map[string]any{"paused": true},
	}
}

// unpause ends the pause that a request began, where no reload came of it: the webhook reads what is stored, and the configuration may
// have changed back. The Deployment would otherwise be paused for the whole period. A pause that another writer has changed stays.
func (a *Actions) unpause(ctx context.Context, s gather.Subject, request poke.Request) {
	begin, paused, err := unstructured.NestedString(request.Further, "metadata", "annotations", a.pausedAt)
	if err != nil || !paused {
		return
	}
	since := annotationPointer(a.pausedAt)
	err = a.operate(ctx, s,
		jsonpatch.NewOperation("test", since, begin), jsonpatch.NewOperation("remove", since, nil),
		jsonpatch.NewOperation("test", pausedField, true), jsonpatch.NewOperation("remove", pausedField, nil),
	)
	if err != nil {
		log.FromContext(ctx).Info("Cannot end the pause of a request that no reload came of", "workload", s.Key, "error", err.Error())
	}
}

// pausedField is the JSON pointer to the pause of a Deployment.
const pausedField = "/spec/paused"

// pausing is a pause that a direct stamp begins.
type pausing struct {
	operations []jsonpatch.Operation
	period     time.Duration
}

// pausingDirectly returns the pause that a direct stamp of the stored version begins, if it does.
func (a *Actions) pausingDirectly(s gather.Subject, version pausable, result stamp.Result) pausing {
	state := a.pauseState(s, version)
	if !result.Stamped || !state.Begins() {
		return pausing{}
	}
	pointer := annotationPointer(a.pausedAt)
	return pausing{period: state.Period, operations: []jsonpatch.Operation{
		jsonpatch.NewOperation("add", pointer, a.pauseBegin()),
		jsonpatch.NewOperation("add", pausedField, true),
	}}
}

func (a *Actions) pauseBegin() string { return a.now().UTC().Format(time.RFC3339) }
