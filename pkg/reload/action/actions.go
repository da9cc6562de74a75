package action

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/report"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Client writes objects; a client.Client does.
type Client interface {
	Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error
	Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error
	Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// Options are what Actions work with.
type Options struct {
	Gather  gather.Gatherer
	Client  Client
	State   *state.State
	Backoff state.Backoff
	Queue   *queue.Queue
	Events  *report.Reporter
	Metrics prometheus.Registerer
	// Gates hold back what a live read shows to be too early.
	Gates state.Gates
	// Webhook means that an admission webhook of ours is meant to answer; without it the actions stamp by themselves.
	Webhook bool
	// InScope reports whether a workload that was in scope a moment ago may still be handled with these labels; nil handles all.
	InScope func(ctx context.Context, key workload.Key, labels map[string]string) bool
	// WatchFails reports whether the watch of a workload fails, so that the loop may know an older state of it; nil if all watches work.
	WatchFails func(key workload.Key) bool
	// PausedAt is the annotation with the begin of a pause of ours; empty if there are none.
	PausedAt string
	// UnreadPausePeriod is the annotation with the period of a pause where no dialect reads it; empty if one does. Pauses are only ended then.
	UnreadPausePeriod string
	Jobs              Jobs
	Log               logr.Logger
}

// Jobs says how Jobs are created again. The zero value leaves all of them alone.
type Jobs struct {
	// Follow watches Jobs. Without it, the re-creations that were begun before are completed.
	Follow bool
	// RerunFinished creates also those again that are complete or have failed.
	RerunFinished bool
	// Store is where their manifests are between the deletion and the creation.
	Store jobrun.Store
	// MayList reports whether the manifests may be listed. Only an installation that creates Jobs again needs the permission. nil: they may
	// be.
	MayList func(ctx context.Context) (bool, error)
}

// Ignores reports whether a workload is a Job that is left alone, whatever its annotations ask for. pending says that a change of its
// configuration came before it finished: how long such a change has to settle does not decide whether the Job runs again.
func (j Jobs) Ignores(s workload.Summary, pending bool) bool {
	return s.Kind.CreateOnly && (s.Controlled() || s.Finished() && !j.RerunFinished && !pending)
}

// Actions write what the Verdict about a workload calls for, and return how its reconciliation ends. They are safe for concurrent use.
type Actions struct {
	*base

	webhook     bool
	requests    requests
	stamps      stamps
	restarts    restarts
	recreations recreations
	completions completions
	resumption  resumption
	notices     notices
	adoptions   adoptions
	idle        idle
	pauses      pauses
	runs        runs
}

// New returns Actions that have no write in flight, and registers their metrics.
func New(o Options) *Actions {
	b := newBase(o)
	a := &Actions{
		base: b, webhook: o.Webhook,
		pauses:   pauses{b, o.PausedAt, o.UnreadPausePeriod},
		runs:     runs{b, &jobLists{}},
		restarts: restarts{b},
		notices:  notices{b},
	}
	a.stamps = stamps{b, a.pauses, a.runs}
	a.requests = requests{b, a.stamps, a.pauses, a.runs}
	a.idle = idle{b, a.notices, a.runs}
	a.adoptions = adoptions{b, a.notices, a.idle, !o.Webhook}
	m := manifests{b.writer, o.Jobs.Store, b.gather, &b.state.Recreations}
	a.completions = completions{b, m, o.Queue}
	a.recreations = recreations{b, o.Jobs.RerunFinished, m, a.adoptions, a.completions}
	a.resumption = resumption{m, o.Jobs, o.Queue, o.Log}
	return a
}

// Join prepares the metrics for a kind whose workloads are handled from now on.
func (a *Actions) Join(kind workload.Kind) { a.metrics.join(kind) }

// Reload makes a reload that is due, by a stamp unless the kind or an annotation asks for something else.
func (a *Actions) Reload(ctx context.Context, s gather.Subject, in policy.Input, verdict policy.Verdict) Outcome {
	switch {
	case a.gather.NotifyOnly:
		return a.notices.notify(ctx, s, in)
	case s.Object.Kind.CreateOnly:
		return a.recreations.recreate(ctx, s)
	case s.View.Intent.Restart:
		return a.restarts.restart(ctx, s, in)
	case a.webhook:
		return a.requests.send(ctx, s, in, verdict)
	default:
		return a.stamps.write(ctx, s, verdict)
	}
}

// Adopt writes the Record: what is there now is what the pods have.
func (a *Actions) Adopt(ctx context.Context, s gather.Subject, in policy.Input, found policy.Assessment) Outcome {
	return a.adoptions.adopt(ctx, s, in, found)
}

// UpToDate does what is left where nothing is due.
func (a *Actions) UpToDate(ctx context.Context, s gather.Subject) Outcome { return a.idle.end(ctx, s) }

// LeaveAlone ends what is pending for a workload that is not to be reloaded: the run of a CronJob, and a dummy that was stored while no
// webhook answered. Where an annotation ignores the workload, nothing is written.
func (a *Actions) LeaveAlone(ctx context.Context, s gather.Subject) Outcome {
	a.state.Runs.ClearPending(s.CronJob())
	if s.View.Ignored {
		return InOrder{s}
	}
	return a.idle.purge(ctx, s)
}

// RequireRun records that a CronJob is to be run for its last reload, where a write of a user has brought it.
func (a *Actions) RequireRun(s gather.Subject) { a.runs.require(s) }

// EndPause ends a pause of ours that is over: the watch then brings the workload back. Otherwise it returns how long to wait for the
// end, with no outcome; 0 if there is no pause of ours. The pause of a workload that a label excludes,
// or that asks for nothing any more, ends as well.
func (a *Actions) EndPause(ctx context.Context, s gather.Subject) (wait time.Duration, ended Outcome) {
	return a.pauses.end(ctx, s)
}

// CompleteRecreation creates a Job whose manifest is in a Secret, whichever leader has deleted it, and deletes the Secret.
func (a *Actions) CompleteRecreation(ctx context.Context, key workload.Key) Outcome {
	return a.completions.complete(ctx, key)
}

// ResumeRecreations queues the Jobs that an earlier leader has deleted and not created again. It tries until it has listed them. This
// process must lead: a standby queues nothing.
func (a *Actions) ResumeRecreations(ctx context.Context) { a.resumption.resume(ctx) }

// The reasons of the Events about the Record and the stamp.
const (
	reasonAdopted  = "RecordAdopted"
	reasonTooLarge = "RecordTooLarge"
	reasonLost     = "StampLost"
)

// ReportLostStamp reports that a reload of ours has left no trace on the pod template: then it has restarted no pod either. The pods of a Job
// that was created again are new ones, also where its template has no stamp.
func (a *Actions) ReportLostStamp(s gather.Subject) {
	if s.View.Managed[stamp.Hash] != "" || s.View.Intent.Restart || s.Object.Kind.CreateOnly {
		return
	}
	if a.stampedWithoutTrace(s) {
		a.events.Warn(s.Reported(), reasonLost, lost(s.Object.Kind).Error())
	}
}

// stampedWithoutTrace reports whether last-reload names a stamp that was made at the present generation: one that is stored raises it. Where
// the annotation alone has raised it, as that of a Deployment, it is the one that the stamp of this process gave. That generation alone proves
// nothing: after a restore of etcd, another write gives it a second time.
func (a *Actions) stampedWithoutTrace(s gather.Subject) bool {
	last, err := record.ParseLastReload(s.View.Managed[stamp.LastReload])
	if err != nil || last.Hash == "" || last.Generation == 0 {
		return false
	}
	present := s.Object.Generation()
	return last.Generation == present || generationAfter(last.Generation) == present && a.state.Writes.IsStamped(s.Key, present)
}

// lost explains how a stamp can be made and not be there.
func lost(kind workload.Kind) error {
	cause := "another admission webhook or policy removes it, or the reload request before pod-reloader's webhook is called: " +
		"make it keep annotations that it does not own, " +
		"or, where it is that of another installation of pod-reloader with another digest key or other flags, let one of them handle the workload"
	if strings.Contains(kind.Group, ".") { // it has a schema of its own
		cause = fmt.Sprintf("the schema of %s drops metadata.annotations there: declare them, "+
			"or set x-kubernetes-preserve-unknown-fields; or %s", kind.Kind, cause)
	}
	return fmt.Errorf("the pods are not restarted: the stamp on the pod template at %s is not stored; %s",
		strings.Join(kind.Template, "."), cause)
}
