package reload

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// subject is one workload under reconciliation.
type subject struct {
	key      workload.Key
	object   workload.Summary
	view     stamp.View
	problems []annotation.Problem
	// events are the arrivals of the config events that the reconciliation takes into account.
	events state.Arrivals
	// stored is set if the API server has stored a write of this reconciliation that does not end it.
	stored bool
	// pausedFor is the period for which the reload of this reconciliation has paused the workload; 0 if it has not.
	pausedFor time.Duration
	// ran is the Job that was made for this reload; empty if none.
	ran state.Run
	// owesRun says that the Job may have started with an older content than the one that is stamped.
	owesRun bool
	// restarted says that the pods restart without a new template.
	restarted bool
}

// reported returns the workload as Events are about it.
func (s subject) reported() report.Subject {
	return report.Subject{
		Key: s.key, Object: s.object, Managed: s.view.Managed, PausedFor: s.pausedFor, Ran: s.ran.Job, Restarted: s.restarted,
	}
}

// gatherer reads what decisions depend on.
type gatherer struct {
	opts  Options
	store Store
	keys  Keys
	live  client.Reader
	// past is Dependencies.Past.
	past   func(ctx context.Context, namespace string, ref reference.Ref, version string) (digest.State, error)
	births *state.Births
	now    func() time.Time
}

// subject reads the annotations of a workload.
func (g gatherer) subject(key workload.Key, o workload.Summary, events state.Arrivals) subject {
	view, problems := g.opts.Reader.ReadSummary(o)
	if o.Kind.CreateOnly {
		view.Intent = view.Intent.AtOnce()
	}
	return subject{key: key, object: o, view: view, problems: problems, events: events}
}

// input returns what is known without a read.
func (g gatherer) input(s subject) policy.Input {
	refs := s.view.Intent.Refs()
	known := s.view.Managed.Known()
	current, ring := known.Keep(g.store.Observe(s.key.Namespace, refs), g.keys.Ring())
	return policy.Input{
		Namespace:             s.key.Namespace,
		Intent:                s.view.Intent,
		Refs:                  refs,
		Required:              s.view.Required,
		Known:                 known,
		Current:               current,
		Ring:                  ring,
		ReloadMissingRequired: g.opts.ReloadMissingRequired,
	}
}

// read adds the contents of some config objects to the current state.
func (g gatherer) read(ctx context.Context, s subject, in policy.Input, refs []reference.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	states, err := g.store.Current(ctx, s.key.Namespace, refs)
	if err != nil {
		return err
	}
	states, _ = in.Known.Keep(states, in.Ring)
	maps.Copy(in.Current, states)
	return nil
}

// stored reads a workload as a whole, live.
func (g gatherer) stored(ctx context.Context, s subject) (workload.Object, error) {
	u := s.object.Kind.NewObject()
	err := g.live.Get(ctx, types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name}, u)
	return workload.Object{Kind: s.object.Kind, Raw: u.Object}, err
}

// webhookInput is what the webhook would have read.
func (g gatherer) webhookInput(s subject, ring digest.Ring, states map[reference.Ref]digest.State) stamp.Live {
	return stamp.Live{
		States: states, Ring: ring, Namespace: s.key.Namespace, Now: g.now(),
		Revision: g.opts.Revision, NotifyOnly: g.opts.NotifyOnly, ReloadMissingRequired: g.opts.ReloadMissingRequired,
	}
}
