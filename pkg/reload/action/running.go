package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The reasons of the Events about runs.
const (
	reasonRunWaits   = "RunPostponed"
	reasonRunRefused = "RunForbidden"
	reasonRunFailed  = "RunFailed"
)

// mostActive is how many active Jobs an Event names.
const mostActive = 8

// isRunDue reports whether a reload runs a CronJob besides stamping the template of its next run.
func isRunDue(s gather.Subject, verdict policy.Verdict) bool {
	if !s.Object.Kind.Schedules() {
		return false
	}
	tracked := s.View.Intent.Tracked
	return slices.ContainsFunc(verdict.Changes, func(c policy.Change) bool {
		if c.Ref != policy.Any {
			return tracked[c.Ref].AtOnce
		}
		for _, trigger := range tracked {
			if trigger.AtOnce {
				return true
			}
		}
		return false
	})
}

// runOf returns the run with the states that a stamp is made from. A change of what is tracked without running the CronJob, between
// two attempts at the reload, makes it no other run; neither does a rotation of the digest key: the Record keeps its key until the stamp.
func runOf(view stamp.View, ring digest.Ring, states map[reference.Ref]digest.State) (due state.Run, err error) {
	newest, ok := ring.Newest()
	if !ok {
		return state.Run{}, digest.ErrNoKey
	}
	if due.Hash, err = digest.Hash(newest.ID, digest.Subset(states, view.Intent.Refs())); err != nil {
		return state.Run{}, err
	}
	due.Follows, _ = reloadsOf(view)
	content, named := digest.Subset(states, view.Intent.AtOnce().Refs()), newest.ID
	if known, ok := ring.Key(view.Known().Key()); ok {
		named = known.ID
	}
	if due.Content, err = digest.Hash(named, content); err != nil {
		return state.Run{}, err
	}
	for _, key := range ring.Keys() {
		if same, err := digest.Hash(key.ID, content); err == nil && key.ID != named {
			due.Same = append(due.Same, same)
		}
	}
	return due, nil
}

// recordedRun returns the run with the content that was stamped last. Without a Record, any change runs the CronJob.
func recordedRun(view stamp.View) state.Run {
	due := state.Run{Hash: view.Managed[stamp.Hash], Content: view.Managed[stamp.Hash]}
	_, due.Follows = reloadsOf(view)
	known := view.Known().Record
	if known.Empty() {
		return due
	}
	entries := map[reference.Ref]string{}
	for ref, item := range known.Items(view.Intent.AtOnce().Refs()) {
		entries[ref] = item.Entry
	}
	due.Content = digest.HashRecorded(known.Key, entries)
	return due
}

// reloadsOf names the last reload of a workload and the one before that, as each last-reload that follows keeps them; empty for none.
func reloadsOf(view stamp.View) (last, before string) {
	explained, err := record.ParseLastReload(view.Managed[stamp.LastReload])
	if err != nil {
		return "", ""
	}
	all := explained.All()
	if len(all) > 1 {
		before = nameOf(all[1])
	}
	return nameOf(all[0]), before
}

// nameOf names a reload, however much is known of it.
func nameOf(r record.LastReload) string { return r.Time.Format(time.RFC3339Nano) + " " + r.Hash }

// runs makes Jobs of CronJobs whose reload runs them at once.
type runs struct{ *base }

// runIfDue runs a CronJob whose reload asks for it, with the states that the stamp is made from.
func (r runs) runIfDue(
	ctx context.Context, s *gather.Subject, verdict policy.Verdict, ring digest.Ring, states map[reference.Ref]digest.State,
) Outcome {
	if !isRunDue(*s, verdict) {
		return nil
	}
	due, err := runOf(s.View, ring, states)
	if err != nil {
		return failed{*s, unreadable(err)}
	}
	return r.run(ctx, s, verdict, due)
}

// run makes the Job of a CronJob whose reload is due, before the reload is stored: what is repeated makes no second one.
func (r runs) run(ctx context.Context, s *gather.Subject, verdict policy.Verdict, due state.Run) Outcome {
	if !isRunDue(*s, verdict) {
		return nil
	}
	o, err := r.gather.Stored(ctx, *s)
	switch {
	case apianswer.NotFound(err):
		return InOrder{*s}
	case err != nil:
		return failed{*s, failedWrite(reasonRunFailed, err)}
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
	due.Job = cron.JobName(due.Follows, due.Content)
	made, again := r.state.Runs.JobFor(s.Key, due)
	if again && made.Job == due.Job {
		s.Ran = due // by an earlier attempt, perhaps under other digest keys
		r.state.Runs.AddDigests(s.Key, due)
		return nil
	}
	if wait := r.state.Runs.Wait(s.Key, due.Job, r.now(), r.gates.Refractory); wait > 0 {
		if !again {
			return Waiting(queue.After(wait, queue.Retry))
		}
		s.Ran, s.NeedsRun = made, true // another Job would be too soon, but under constant change the stamp must not wait for it
		return nil
	}
	return r.afterRun(s, r.makeJob(ctx, s, cron, due))
}

// isStillDue reports whether a stored CronJob asks for a run at this reload, too: nothing takes back a Job that was made because a watch
// is behind.
func (r runs) isStillDue(ctx context.Context, live gather.Subject, o workload.Object, verdict policy.Verdict) bool {
	return !r.isReleasedLive(ctx, live.Key, o, live.View) && isRunDue(live, verdict)
}

// afterRun says how a reload goes on after the attempt to make its Job.
func (r runs) afterRun(s *gather.Subject, err error) Outcome {
	switch {
	case err == nil:
		r.events.Clear(s.Reported(), reasonRunRefused)
		return nil
	case unauthorized(err) && !apierrors.IsUnauthorized(err):
		// The next run has the new configuration; a reload that waited for a permission would delay that, too.
		r.events.Warn(s.Reported(), reasonRunRefused, "the CronJob is not run at once, only its next run gets the new configuration: "+textOf(err))
		return nil
	case errors.Is(err, errActive):
		return failed{*s, failure{reason: reasonRunWaits, err: err, refused: true, asked: true}}
	default:
		return failed{*s, failedWrite(reasonRunFailed, err)}
	}
}

// outdated reports whether a Job was made for another content than that of a reload. With --hash=revision, the hash of the reload is no
// digest of the content.
func outdated(ran state.Run, last record.LastReload) bool {
	return ran.Hash != cmp.Or(last.Digest, last.Hash)
}

// needsRun reports whether a Job must follow a reload with what the webhook has read: its own one was made for another content, or what
// runs the CronJob has changed as well, as the loop had not seen.
func needsRun(s gather.Subject, verdict policy.Verdict, last record.LastReload) bool {
	if s.Ran.Job != "" {
		return outdated(s.Ran, last)
	}
	stamped := verdictOf(last)
	if last.More > 0 && len(last.Changes)+last.More > len(verdict.Changes) {
		stamped.Changes = append(stamped.Changes, policy.Change{Ref: policy.Any}) // of those that it does not name, some may not have been seen
	}
	return !isRunDue(s, verdict) && isRunDue(s, stamped)
}

// require records that a CronJob is to be run for its last reload, which the loop has not seen before, where a write of a user has
// brought it: then the webhook has stamped the change before the loop could run the CronJob. A reload from before this process leads runs
// nothing, since the leader of that time may have made its Job. So does one that was judged before: its annotation may have been shortened
// since.
func (r runs) require(s gather.Subject) {
	if !s.Object.Kind.Schedules() {
		return
	}
	last, err := record.ParseLastReload(s.View.Managed[stamp.LastReload])
	if err != nil || !last.BelongsTo(s.View.Managed[stamp.Hash]) || r.gather.NotifyOnly || !r.events.IsOfThisLeader(s.Reported(), last) {
		return
	}
	if r.state.Runs.FirstDecision(s.Key, nameOf(last)) && isRunDue(s, changesOfWrite(last)) {
		r.state.Runs.SetPending(s.Key)
	}
}

// changesOfWrite returns the changes of configuration that a user's write of the workload has brought. What the write itself has added to
// the lists, or taken from them, has not changed.
func changesOfWrite(last record.LastReload) policy.Verdict {
	if last.Cause != record.CauseRelease && last.Cause != record.CauseListEdit {
		return policy.Verdict{}
	}
	brought := verdictOf(last)
	brought.Changes = slices.DeleteFunc(brought.Changes, func(c policy.Change) bool {
		return c.Type == record.Listed || c.Type == record.Unlisted
	})
	if last.More > 0 && last.Cause == record.CauseRelease {
		brought.Changes = append(brought.Changes, policy.Change{Ref: policy.Any})
	}
	return brought
}

// runPending makes the Job of a reload that has none, or whose own Job may have started with an older content, unless a later reload makes
// another. Where only that has changed which does not run the CronJob, none is due.
func (r runs) runPending(ctx context.Context, s gather.Subject) Outcome {
	if !r.state.Runs.IsPending(s.Key) {
		return nil
	}
	due := recordedRun(s.View)
	if r.state.Runs.HasRun(s.Key, due.Content) {
		r.state.Runs.ClearPending(s.Key)
		return nil
	}
	if !r.MayWrite(s, inflight.Background) {
		return Waiting{} // queued again when it has a slot
	}
	unnamed := policy.Verdict{Changes: []policy.Change{{Ref: policy.Any}}}
	ended := r.run(ctx, &s, unnamed, due)
	if ended == nil {
		r.state.Runs.ClearPending(s.Key)
	}
	return ended
}

// errActive says that the concurrency policy allows no run now.
var errActive = errors.New("concurrencyPolicy is Forbid: the run waits until no other Job is active")

// makeJob makes a Job as far as the CronJob lets it.
func (r runs) makeJob(ctx context.Context, s *gather.Subject, cron cronrun.CronJob, due state.Run) error {
	made, active, err := r.otherJobs(ctx, s, cron, due.Job)
	job, action := cron.Job(due.Job, r.annotations.ConfigHash, due.Hash), cron.Decide(len(active))
	if err == nil && !made && action == cronrun.Replace {
		made, err = r.replaceJobs(ctx, s, job, active)
	}
	switch {
	case err != nil:
		return err
	case made:
		r.ran(ctx, s, due, true) // an earlier attempt has made it; it may have finished
		return nil
	case action == cronrun.Skip:
		return nil
	case action == cronrun.Wait:
		return fmt.Errorf("%w: %s", errActive, namesOf(active))
	}
	err = r.create(ctx, *s, job)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create job %s: %w", due.Job, err)
	}
	r.ran(ctx, s, due, err != nil)
	return nil
}

// namesOf names the first of some active Jobs.
func namesOf(active []cronrun.ActiveJob) string {
	var names []string
	for _, job := range active[:min(len(active), mostActive)] {
		names = append(names, job.Name)
	}
	return strings.Join(names, ", ")
}

// ran records that a Job is made, by this attempt or by an earlier one.
func (r runs) ran(ctx context.Context, s *gather.Subject, due state.Run, existed bool) {
	s.Ran = due
	r.state.Runs.RecordJob(s.Key, due, r.now())
	log.FromContext(ctx).Info("created a Job for the CronJob", "workload", s.Key, "job", due.Job, "existed", existed)
}

// jobsAtOnce is how many Jobs of a namespace are in memory at a time: there may be thousands.
const jobsAtOnce = 100

// otherJobs reports whether a CronJob has the Job of a run, and returns which of its Jobs are active, where its runs depend on others.
func (r runs) otherJobs(ctx context.Context, s *gather.Subject, cron cronrun.CronJob, name string) (
	made bool, active []cronrun.ActiveJob, err error,
) {
	if !cron.Exclusive() {
		return false, nil, nil
	}
	err = r.gather.List(ctx, jobKind().GroupVersionKind, jobsAtOnce, func(job unstructured.Unstructured) {
		one := []unstructured.Unstructured{job}
		made = made || cron.Has(one, name)
		active = append(active, cron.Active(one)...)
	}, client.InNamespace(s.Key.Namespace))
	if err != nil {
		return false, nil, fmt.Errorf("list the active jobs: %w", err)
	}
	return made, active, nil
}
