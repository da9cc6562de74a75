package reload

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// subject is one workload under treatment.
type subject struct {
	key      Key
	object   workload.Summary
	view     stamp.View
	problems []annotation.Problem
	// events are the arrivals of the config events that the treatment takes into account.
	events arrivals
	// stored is set if the API server has stored a write of this treatment that does not end it.
	stored bool
}

func (s subject) refs() []reference.Ref { return s.view.Intent.Refs() }

// Reconcile compares one workload with its configuration and does what is due. It returns no errors: what failed is due
// again after a while, at the workload's own pace.
func (l *loop) Reconcile(ctx context.Context, key Key) (reconcile.Result, error) {
	defer l.writes.Leave(key)
	l.memory.aging.Taken(key)
	if l.store.WaitForSync(ctx) != nil {
		return again(time.Second, priorityWorkload), nil // the context has ended
	}
	s, ok := l.subject(ctx, key)
	if !ok {
		l.memory.Forget(key)
		l.backoff.forget(key)
		return reconcile.Result{}, nil
	}
	if !l.inScope(ctx, s) {
		return l.inOrder(s), nil
	}
	if s.view.Excluded || !s.view.Intent.Asked {
		l.complain(ctx, s, nil)
		return l.purge(ctx, s), nil
	}
	if l.keys.Ring().Empty() {
		// The change of the keys queues it again. The readiness of the process reports it; a line and an Event for each
		// workload would not help.
		return reconcile.Result{}, nil
	}
	if l.memory.Behind(key, s.object.Generation(), l.now()) {
		// The cache has not seen our own write yet. Its event brings the workload back; the delay is for a lost one.
		return again(time.Second, priorityWorkload), nil
	}
	// Not earlier: what a cache that is behind tells of was announced, and is not the last reload any more.
	l.announce(s)
	l.missStamp(s)
	return l.treat(ctx, s), nil
}

func (l *loop) subject(ctx context.Context, key Key) (subject, bool) {
	o, ok := l.object(ctx, key)
	if !ok {
		return subject{}, false
	}
	view, problems := l.opts.Reader.ReadSummary(o)
	return subject{key: key, object: o, view: view, problems: problems, events: l.memory.Attempt(key)}, true
}

// inScope says whether the workload may be looked after, by its labels and its namespace.
func (l *loop) inScope(ctx context.Context, s subject) bool {
	switch {
	case s.view.Ignored, !l.opts.Scope.Object(s.key.Namespace, s.object.Labels()):
		return false
	case !l.opts.Scope.SelectsNamespaces():
		return true
	}
	ns := emptyNamespace()
	if err := l.readNamespace(ctx, s.key.Namespace, ns); err != nil {
		// The namespace's own event queues the workload again.
		return false
	}
	return l.opts.Scope.Namespace(s.key.Namespace, ns.GetLabels())
}

// treat decides and acts: gather, decide, wait at the gates, apply.
func (l *loop) treat(ctx context.Context, s subject) reconcile.Result {
	in := l.input(s)
	a := policy.Assess(in)
	l.complain(ctx, s, in.Current)
	l.warn(s, reasonNewer, newerRecord(in.Known))
	if len(a.Reads) == 0 && a.Verdict.Action == policy.Nothing && len(a.Verdict.Adopt) == 0 {
		l.warn(s, reasonHeld, "")
		return l.purge(ctx, s)
	}
	if wait := l.memory.Deferred(s.key, l.now()); wait > 0 {
		return again(wait, priorityRetry)
	}
	if wait := l.contested(ctx, s); wait > 0 {
		return again(wait, priorityRetry)
	}
	if wait := l.postpone(ctx, s, a); wait > 0 {
		return again(wait, priorityConfig)
	}
	if !l.mayWrite(s, rank(a)) {
		if a.MayReload {
			l.due(s)
		}
		return reconcile.Result{} // queued again when it has a slot
	}
	if err := l.read(ctx, s, in, a.Reads); err != nil {
		return l.retry(ctx, s, unreadable(err))
	}
	return l.apply(ctx, s, in, policy.Assess(in))
}

// rank returns how urgent the first write is.
func rank(a policy.Assessment) inflight.Class {
	if a.MayReload {
		return inflight.Urgent
	}
	return inflight.Background
}

// due notes that a reload is due, or may be.
func (l *loop) due(s subject) {
	since := s.events.first
	if since.IsZero() {
		since = l.now()
	}
	l.memory.Due(s.key, since)
}

// postpone returns how long the gates hold back what may be due. An adoption is not held back: it restarts nothing, and the
// later it is made, the more changes are taken for what the pods have started with.
func (l *loop) postpone(ctx context.Context, s subject, a policy.Assessment) time.Duration {
	if !a.MayReload {
		return 0
	}
	if !s.events.first.IsZero() {
		l.memory.Due(s.key, s.events.first)
	}
	wait, gate := l.gates.wait(l.moment(s))
	if wait > 0 {
		log.FromContext(ctx).V(1).Info("Waiting", "gate", gate, "for", wait)
	}
	if gate == gateSettle {
		l.memory.Settles(s.key, l.now().Add(wait))
	}
	return wait
}

func (l *loop) input(s subject) policy.Input {
	return policy.Input{
		Namespace:             s.key.Namespace,
		Intent:                s.view.Intent,
		Required:              s.view.Required,
		Known:                 s.view.Marks.Known(),
		Current:               l.store.Observe(s.key.Namespace, s.refs()),
		Ring:                  l.keys.Ring(),
		ReloadMissingRequired: l.opts.ReloadMissingRequired,
	}
}

func (l *loop) moment(s subject) moment {
	now := l.now()
	m := moment{now: now, unacted: s.events.unacted, lastEvent: s.events.last}
	if last, ok := s.view.Marks.LastReload(now); ok {
		m.lastReload = last.Time
		// A clock that is ahead of ours must not hold the next reload back for as long as it is ahead.
		if seen := l.memory.Seen(s.key); !seen.IsZero() && seen.Before(last.Time) {
			m.lastReload = seen
		}
	}
	// Another writer may have removed or reverted the annotation.
	if at := l.memory.StampedAt(s.key); at.After(m.lastReload) {
		m.lastReload = at
	}
	return m
}

// read adds the contents of some config objects to the current state.
func (l *loop) read(ctx context.Context, s subject, in policy.Input, refs []reference.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	states, err := l.store.Current(ctx, s.key.Namespace, refs)
	if err != nil {
		return err
	}
	maps.Copy(in.Current, states)
	return nil
}

// apply does what the Verdict calls for.
func (l *loop) apply(ctx context.Context, s subject, in policy.Input, a policy.Assessment) reconcile.Result {
	verdict := a.Verdict
	l.hold(ctx, s, verdict)
	switch {
	case verdict.Action == policy.Reload:
		return l.reload(ctx, s, in, verdict)
	case verdict.Foreign != "":
		if t, ok := l.mayAdoptForeign(ctx, s, verdict.Foreign); !ok {
			return l.retry(ctx, s, t)
		}
		return l.adopt(ctx, s, in, a)
	case len(verdict.Adopt) > 0:
		return l.adopt(ctx, s, in, a)
	default:
		return l.purge(ctx, s)
	}
}

// mayAdoptForeign looks for the key once more, since the ring in memory may be old, and then allows each foreign key to
// be taken over once. If not, it returns what is in the way.
func (l *loop) mayAdoptForeign(ctx context.Context, s subject, id digest.KeyID) (trouble, bool) {
	if err := l.keys.Refresh(ctx); err != nil {
		return failedWrite("ForeignDigestKey", err), false
	}
	if _, ok := l.keys.Ring().Key(id); ok {
		return trouble{reason: "ForeignDigestKey", soon: true, quiet: true, err: fmt.Errorf("the key %s has just arrived", id)}, false
	}
	if !l.memory.MayAdoptForeign(s.key, id) {
		return foreignKey(id), false
	}
	return trouble{}, true
}

// inOrder closes a treatment that leaves nothing to do.
func (l *loop) inOrder(s subject) reconcile.Result {
	l.memory.Settled(s.key)
	l.memory.Done(s.key)
	l.memory.Recovered(s.key, reasonProblems, reasonMissing, reasonHeld, reasonNoRoom, reasonNewer, reasonLost, reasonContested)
	l.backoff.forget(s.key)
	return reconcile.Result{}
}
