package action

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The reasons of the Events about runs.
const (
	reasonRunRefused = "RunForbidden"
	reasonRunFailed  = "RunFailed"
)

// isRunDue is cronrun.IsDue.
func isRunDue(s gather.Subject, verdict policy.Verdict) bool {
	return cronrun.IsDue(s.Object.Kind, s.View.Intent, verdict.Changes)
}

// runs makes Jobs of CronJobs whose reload runs them at once.
type runs struct {
	*base

	// shared are lists of Jobs that several CronJobs may use.
	shared *jobLists
}

// runIfDue runs a CronJob whose reload asks for it, with the states that the stamp is made from.
func (r runs) runIfDue(
	ctx context.Context, s *gather.Subject, verdict policy.Verdict, ring digest.Ring, states map[reference.Ref]digest.State,
) Outcome {
	if !isRunDue(*s, verdict) {
		return nil
	}
	r.state.Runs.Supersede(s.CronJob())
	due, err := cronrun.Of(s.View, ring, states)
	if err != nil {
		return failed{*s, unreadable(err)}
	}
	return r.run(ctx, s, verdict, due)
}

// run makes the Job of a CronJob whose reload is due, before the reload is stored: what is repeated makes no second one.
func (r runs) run(ctx context.Context, s *gather.Subject, verdict policy.Verdict, due cronrun.Run) Outcome {
	if !isRunDue(*s, verdict) {
		return nil
	}
	o, err := r.gather.Stored(ctx, *s)
	switch {
	case apianswer.NotFound(err):
		return InOrder{*s}
	case err != nil:
		return failed{*s, failedWrite(s.Object.Kind, reasonRunFailed, err)}
	case o.UID() != s.Object.UID():
		return Waiting(queue.After(time.Second, queue.Retry)) // it was created again; the watch brings it
	}
	live := r.withObject(*s, o)
	switch {
	case live.View.Unresolved != nil: // whether the run is due is not known
		return Unreadable(*s, live.View.Unresolved)
	case !r.isStillDue(ctx, live, o, verdict):
		return nil // what else becomes of the reload, the webhook or the direct stamp decides
	case live.View.Managed[stamp.LastReload] != s.View.Managed[stamp.LastReload]:
		return Waiting(queue.After(time.Second, queue.Retry)) // reloaded since, and perhaps run: the Job of this reload would be another one
	}
	cron := cronrun.CronJob{Object: o}
	due.After = s.View.Managed[stamp.LastReload]
	made, again := r.state.Runs.JobFor(s.CronJob(), due)
	if again && made.Content == due.Content {
		due.Job = made.Job
		s.Effects.Run = due // by an earlier attempt, perhaps under other digest keys
		r.state.Runs.AddDigests(s.CronJob(), due)
		return nil
	}
	due.Job = r.jobName(s.CronJob(), cron, due)
	if r.state.Runs.Wait(s.CronJob(), due.Job, r.now(), r.gates.Refractory) > 0 {
		s.Effects.Run, s.Effects.NeedsRun = made, true // another Job would be too soon; the stamp does not wait for it
		return nil
	}
	return r.afterRun(s, due.Job, r.makeJob(ctx, s, cron, due))
}

// jobName returns the name of a Job. A content that has come back after another one was run gets one of its own.
func (r runs) jobName(of state.CronJob, cron cronrun.CronJob, due cronrun.Run) string {
	name := cron.JobName(due.Follows, due.Content)
	if last, before := r.state.Runs.MadeBefore(of, name); before {
		return cron.JobName(last, due.Content)
	}
	return name
}

// isStillDue reports whether a stored CronJob asks for a run at this reload, too: nothing takes back a Job that was made because a watch
// is behind.
func (r runs) isStillDue(ctx context.Context, live gather.Subject, o workload.Object, verdict policy.Verdict) bool {
	return !r.isReleasedLive(ctx, live.Key, o, live.View) && isRunDue(live, verdict)
}

// afterRun says how a reload goes on after the attempt to make its Job.
func (r runs) afterRun(s *gather.Subject, job string, err error) Outcome {
	switch {
	case err == nil:
		r.events.Clear(s.Reported(), reasonRunRefused)
		return nil
	case apianswer.Unauthorized(err) && r.state.Runs.Pending(s.CronJob()) == state.UnprovenRun:
		now := r.now()
		since, _ := r.state.Runs.Postpone(s.CronJob(), state.ProofWait, now, unprovenLook)
		s.Effects.NeedsRun = now.Sub(since) < unprovenFor
		return nil // whether a run is due is not known, and a user is not asked for permissions that nothing needs
	case apianswer.Unauthorized(err) && !apierrors.IsUnauthorized(err):
		// The next run has the new configuration; a reload that waited for a permission would delay that, too.
		r.events.Warn(s.Reported(), reasonRunRefused, "the CronJob is not run at once, only its next run gets the new configuration: "+textOf(err))
		return nil
	case errors.Is(err, errActive):
		s.Effects.NeedsRun = true // it follows; the stamp does not wait for it
		if _, begins := r.state.Runs.Postpone(s.CronJob(), state.JobsWait, r.now(), otherJobsLook); begins {
			r.events.EmitRunPostponed(s.Reported(), job, textOf(err))
		}
		return nil
	default:
		return failed{*s, failedWrite(s.Object.Kind, reasonRunFailed, err)}
	}
}

// require records that a CronJob is to be run for its last reload, which the loop has not seen before, where a write of a user has
// brought it: then the webhook has stamped the change before the loop could run the CronJob. For a reload from before this process leads, the
// leader of that time may have made the Job: runPending looks whether the run has waited. A reload that was judged before requires nothing: its
// annotation may have been shortened since.
func (r runs) require(s gather.Subject) {
	if !s.Object.Kind.Schedules() {
		return
	}
	last, ok := cronrun.LastReload(s.View, s.Object.Created())
	if !ok || r.gather.NotifyOnly {
		return
	}
	pending, changes := state.DueRun, cronrun.ChangesOfWrite(last)
	switch {
	case r.events.IsOfThisLeader(s.Reported(), last):
	case s.Object.ForbidsConcurrent():
		pending, changes = state.UnprovenRun, cronrun.ChangesOfReload(last)
	default:
		changes = nil // its run, if any, has waited for nothing
	}
	if r.state.Runs.FirstDecision(s.CronJob(), cronrun.NameOf(last)) && cronrun.IsDue(s.Object.Kind, s.View.Intent, changes) {
		r.state.Runs.Require(s.CronJob(), pending)
	}
}

// runPending makes the Job of a reload that has none, as one that had to wait for other Jobs, or whose own Job may have started with an older
// content, unless a later reload makes another. Where only that has changed which does not run the CronJob, none is due. It also makes one
// where the content has changed back after a Job was made and before its reload was stamped: that Job has a content that is not there any more.
func (r runs) runPending(ctx context.Context, s gather.Subject) Outcome {
	pending := r.state.Runs.Pending(s.CronJob()) != state.NoRun
	last, replaces := r.state.Runs.Unstamped(s.CronJob(), s.View.Managed[stamp.LastReload])
	if !pending && replaces == "" {
		r.state.Runs.EndWait(s.CronJob())
		return nil
	}
	due := cronrun.Recorded(s.View)
	switch {
	case r.state.Runs.HasRun(s.CronJob(), due.Content):
		r.state.Runs.ClearPending(s.CronJob())
		return nil
	case due.Content == replaces:
		due.Follows = last // the last reload may have a Job with this content
	case !pending:
		r.state.Runs.EndWait(s.CronJob())
		return nil
	}
	if r.state.Runs.WaitForOthers(s.CronJob(), r.now()) > 0 {
		return nil
	}
	if wait := max(r.WaitToWrite(s), r.state.Runs.Wait(s.CronJob(), "", r.now(), r.gates.Refractory)); wait > 0 {
		return Waiting(queue.After(wait, queue.Retry))
	}
	if !r.MayWrite(s, inflight.Background) {
		return Waiting{} // queued again when it has a slot
	}
	unnamed := policy.Verdict{Changes: []policy.Change{{Ref: policy.Any}}}
	ended := r.run(ctx, &s, unnamed, due)
	if ended == nil && !s.Effects.NeedsRun {
		r.state.Runs.ClearPending(s.CronJob())
	}
	return ended
}

// otherJobsLook is how often the Jobs are looked at that a run waits for. Nothing reports the end of one: the watch of Jobs leaves out those
// with a controller.
const otherJobsLook = 7 * time.Second

// unprovenLook is how often the Jobs are asked for that prove that a run of an earlier leader is due, while the permission for that is missing,
// and unprovenFor how long. An upgrade that grants it anew takes seconds; many installations never have it.
const (
	unprovenLook = time.Minute
	unprovenFor  = 10 * time.Minute
)

// errActive says that the concurrency policy allows no run now.
var errActive = errors.New("concurrencyPolicy is Forbid: the run waits until no other Job is active")

// makeJob makes a Job as far as the CronJob lets it.
func (r runs) makeJob(ctx context.Context, s *gather.Subject, cron cronrun.CronJob, due cronrun.Run) error {
	others, err := r.otherJobs(ctx, s, cron, due)
	if err != nil || r.hasStarted(ctx, s, due, others.Started) || r.wasMade(s.CronJob(), others) {
		return err
	}
	job, action := cron.Job(due.Job, r.annotations.ConfigHash, due.Hash), cron.Decide(len(others.Active))
	if !others.Made && action == cronrun.Replace {
		others.Made, err = r.replaceJobs(ctx, s, job, others.Active)
	}
	switch {
	case err != nil:
		return err
	case others.Made:
		r.ran(ctx, s, due, true) // an earlier attempt has made it; it may have finished
		return nil
	case action == cronrun.Skip:
		return nil
	case action == cronrun.Wait:
		return r.wait(ctx, s, job, others.Active)
	}
	err = r.create(ctx, *s, job)
	if err != nil && !apianswer.AlreadyExists(err) {
		return fmt.Errorf("create job %s: %w", due.Job, err)
	}
	r.ran(ctx, s, due, err != nil)
	return nil
}

// wait is the error of a run that must wait for active Jobs. Where a wait begins, a dry run shows whether the Job may be made after it: what can
// never follow is not to be waited for.
func (r runs) wait(ctx context.Context, s *gather.Subject, job *unstructured.Unstructured, active []cronrun.ActiveJob) error {
	if !r.state.Runs.Waits(s.CronJob(), state.JobsWait) {
		if err := r.create(ctx, *s, job, client.DryRunAll); apianswer.Unauthorized(err) {
			return fmt.Errorf("dry run of job %s: %w", job.GetName(), err)
		}
	}
	return fmt.Errorf("%w: %s", errActive, reference.List(active, reference.MaxNamed))
}

// ran records that a Job is made, by this attempt or by an earlier one.
func (r runs) ran(ctx context.Context, s *gather.Subject, due cronrun.Run, existed bool) {
	s.Effects.Run = due
	r.state.Runs.RecordJob(s.CronJob(), due, r.now())
	log.FromContext(ctx).Info("created a Job for the CronJob", "workload", s.Key, "job", due.Job, "existed", existed)
}

// jobsAtOnce is how many Jobs of a namespace are in memory at a time: there may be thousands. That many usual ones are no large response.
const jobsAtOnce = 25

// otherJobs returns the Jobs of a CronJob whose runs depend on others, before the Job of a run is made. An earlier leader may have made that for
// an earlier reload.
func (r runs) otherJobs(ctx context.Context, s *gather.Subject, cron cronrun.CronJob, due cronrun.Run) (cronrun.Others, error) {
	last, _ := cronrun.LastReload(s.View, cron.Created())
	names, mayBeMade := []string{due.Job}, r.state.Runs.Pending(s.CronJob()) == state.UnprovenRun
	if !cron.Exclusive() || mayBeMade && !cron.MayWait(last.Time) {
		return cronrun.Others{}, nil
	}
	list := func() ([]cronrun.Job, error) { return r.listJobs(ctx, s.Key.Namespace, cron.Owns) }
	if mayBeMade {
		names = append(names, cron.JobNames(s.View, due.Content)...)
		list = func() ([]cronrun.Job, error) { return r.sharedJobs(ctx, s.Key.Namespace) }
	}
	jobs, err := list()
	if err != nil {
		return cronrun.Others{}, fmt.Errorf("list the active jobs before job %s: %w", due.Job, err)
	}
	return cron.Others(s.View, jobs, names...), nil
}

// sharedJobs returns the Jobs of a namespace, by a list that may be some time old.
func (r runs) sharedJobs(ctx context.Context, namespace string) ([]cronrun.Job, error) {
	return r.shared.of(ctx, namespace, r.now(), func() ([]cronrun.Job, error) { return r.listJobs(ctx, namespace, cronrun.Job.IsOwned) })
}

// listJobs lists those Jobs of a namespace that are kept.
func (r runs) listJobs(ctx context.Context, namespace string, keep func(cronrun.Job) bool) (jobs []cronrun.Job, err error) {
	err = r.gather.List(ctx, workload.Job().GroupVersionKind, jobsAtOnce, func(raw unstructured.Unstructured) {
		if job := cronrun.JobOf(raw, r.annotations.ConfigHash); keep(job) {
			jobs = append(jobs, job)
		}
	}, client.InNamespace(namespace))
	return jobs, err
}

// wasMade reports whether an earlier leader may have made the Job of its reload. It has not where the run had to wait for a Job that is still
// active: then it is pending, as with that leader.
func (r runs) wasMade(of state.CronJob, others cronrun.Others) bool {
	if r.state.Runs.Pending(of) != state.UnprovenRun {
		return false
	}
	if !others.ProveWait() {
		return true
	}
	r.state.Runs.Require(of, state.DueRun)
	return false
}

// hasStarted reports whether a run is made already. While one is pending with the content that is stamped, the schedule may start a Job with
// that. It is the run: where the Jobs follow each other without a pause, no other one would ever be made.
func (r runs) hasStarted(ctx context.Context, s *gather.Subject, due cronrun.Run, started string) bool {
	lastReload := s.View.Managed[stamp.LastReload]
	if started == "" || !r.state.Runs.AwaitsStamped(s.CronJob(), lastReload) {
		return false
	}
	run := cronrun.Recorded(s.View)
	run.Job, run.After = started, lastReload
	r.state.Runs.RecordJob(s.CronJob(), run, r.now())
	log.FromContext(ctx).Info("a Job of the CronJob has started with its new configuration: the run that was pending is not made", "workload", s.Key, "job", started)
	return run.Content == due.Content
}
