package action

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// base is what every action works with: how it reads, writes, reports, and what it remembers.
type base struct {
	writer

	annotations annotation.Keys
	gather      gather.Gatherer
	gates       state.Gates
	state       *state.State
	events      *report.Reporter
	metrics     *metrics
	inScope     func(ctx context.Context, key workload.Key, labels map[string]string) bool
	watchFails  func(key workload.Key) bool
	now         func() time.Time
}

func newBase(o Options) *base {
	if o.InScope == nil {
		o.InScope = func(context.Context, workload.Key, map[string]string) bool { return true }
	}
	if o.WatchFails == nil {
		o.WatchFails = func(workload.Key) bool { return false }
	}
	w := newWriter(o)
	o.Gather.APIReader = timeoutReader{o.Gather.APIReader, w.slots}
	return &base{
		writer: w, annotations: o.Gather.Reader.Keys, gather: o.Gather, gates: o.Gates, state: o.State,
		events: o.Events, metrics: newMetrics(o.Metrics), inScope: o.InScope, watchFails: o.WatchFails, now: o.Gather.Now,
	}
}

// MayWrite is that of the writer. An event can make the write that waits more urgent, where a reload follows from it: the event is looked at
// when it may have settled.
func (b *base) MayWrite(s gather.Subject, class inflight.Class) bool {
	if b.writer.MayWrite(s, class) {
		return true
	}
	b.state.Changes.WaitForOther(s.Key, b.gates.Settle)
	return false
}

// WaitToWrite returns how long after an attempt that failed no config event leads to any write of the workload: under constant change there
// would be no pace otherwise. A write of the workload by others ends the wait, unless a write of the attempt was stored: its event
// would end the wait as well.
func (b *base) WaitToWrite(s gather.Subject) time.Duration {
	wait := b.state.Deferrals.WaitToWrite(s.Key, b.now())
	if wait > 0 {
		b.state.Changes.WaitForOther(s.Key, b.gates.Window())
	}
	return wait
}

// withObject returns the subject as a live read of its workload shows it.
func (b *base) withObject(s gather.Subject, o workload.Object) gather.Subject {
	return b.gather.Subject(s.Key, o.Summary(), s.Events)
}

// isReleasedLive reports whether a workload is not to be handled any more, as a live read shows it: the loop has looked at the cache.
func (b *base) isReleasedLive(ctx context.Context, key workload.Key, o workload.Object, view stamp.View) bool {
	return view.Excluded || !view.Intent.Asked || !b.inScope(ctx, key, o.Labels())
}

// postponeLive returns how much is left of the refractory time after the last reload that a live read shows, if the gates have
// looked at another one: the cache is behind, so that no event ends the wait.
func (b *base) postponeLive(s gather.Subject, live stamp.View) time.Duration {
	now := b.now()
	last, ok := live.Managed.LastReloadTime(now)
	if !ok || live.Managed[stamp.LastReload] == s.View.Managed[stamp.LastReload] {
		return 0
	}
	wait := b.gates.RefractoryWait(state.GateInput{Now: now, LastReload: last})
	if wait > 0 {
		b.state.Deferrals.Defer(s.Key, state.Deferral{Since: now, Until: now.Add(wait), IgnoresEvents: true})
	}
	return wait
}

// assessLive adds the live configuration to the input, and returns the Verdict by that. The webhook verifies a request, but nothing takes
// back a Job, a restart or a notification that was made because a watch is behind: the pods start with what is stored. The outcome is set
// where no reload is due by that.
func (b *base) assessLive(ctx context.Context, s gather.Subject, in policy.Input) (policy.Verdict, Outcome) {
	verdict, f := b.judgeLive(ctx, s, in)
	if f.err != nil {
		return verdict, failed{s, f}
	}
	return verdict, nil
}

// judgeLive is assessLive with what has failed in place of an outcome; without an error if a reload is due.
func (b *base) judgeLive(ctx context.Context, s gather.Subject, in policy.Input) (policy.Verdict, failure) {
	states, err := b.gather.Store.ReadLive(ctx, s.Key.Namespace, in.Refs)
	if err != nil {
		return policy.Verdict{}, unreadable(err)
	}
	kept, _ := in.Known.Keep(states, in.Ring)
	maps.Copy(in.Current, kept)
	verdict := policy.Assess(in).Verdict
	if verdict.Action != policy.Reload {
		return verdict, b.catchUp(ctx, s, states)
	}
	return verdict, failure{}
}

// catchUp is the failure of a reload that is due by the caches, and not by a live read. Mostly they are about to see what was read. Where that
// lasts, the API server that has answered a list or a watch is behind the others: then what is read takes the place of what the watch has
// delivered. No Event says so, as no user can do anything about it.
func (b *base) catchUp(ctx context.Context, s gather.Subject, live map[reference.Ref]digest.State) failure {
	f := transientFailure(reasonReloadFailed, "the configuration has changed again")
	if !b.backoff.HasFailedRepeatedly(s.Key) {
		return f
	}
	f.behind, f.soon = true, false
	f.err = errors.New("what is watched of the configuration is older than what is stored, by which no reload is due")
	b.recheck(ctx, s, live)
	return f
}

// recheck takes in those config objects of which a live read has found something else than the watches have delivered. It reports whether
// there are any. The reload has a slot for its writes, so that this takes no longer than a write.
func (b *base) recheck(ctx context.Context, s gather.Subject, live map[reference.Ref]digest.State) (behind bool) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	known := b.gather.Store.Cached(s.Key.Namespace, slices.Collect(maps.Keys(live)))
	for ref, read := range live {
		seen, watched := known[ref]
		if !watched || seen.SameVersion(read) {
			continue
		}
		behind = true
		if err := b.gather.Store.RecheckBelow(ctx, s.Key.Namespace, ref); err != nil {
			log.FromContext(ctx).V(1).Info("cannot read what a watch has not delivered", "workload", s.Key, "error", textOf(err))
		}
	}
	return behind
}

// settled reports whether the events of an attempt have settled. An attempt to adopt does not wait for that: where it fails, it has not
// acted on them.
func (b *base) settled(s gather.Subject) bool {
	return b.gates.SettleWait(state.GateInput{Now: b.now(), FirstUnhandled: s.Events.FirstUnhandled, LastEvent: s.Events.Last}) == 0
}
