// Package explain answers the question why a workload was restarted, or why it was not.
//
// It is pure and decides nothing by itself: it asks the same policy as the loop and the same rules as the webhook, and
// puts what they say into a Report that a person or a program can read.
package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/cronrun"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/jobrun"
	"github.com/pod-reloader/pod-reloader/pkg/pause"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Input is what a Report is made of.
type Input struct {
	Object workload.Object
	// View and Problems are what stamp.Reader reads of the object.
	View     stamp.View
	Problems []annotation.Problem
	Keys     annotation.Keys
	// Stakater are the annotations of Reloader; nil where they are not read.
	Stakater *annotation.StakaterKeys
	// Unread are those annotations where they are not read; nil where they are.
	Unread *annotation.StakaterKeys
	// States of the tracked Refs, with contents where they could be read.
	States map[reference.Ref]digest.State
	// ReadErrors says of a Ref why its state could not be read.
	ReadErrors map[reference.Ref]error
	// Ring is empty where the reader has no permission on the digest keys: contents can then not be compared.
	Ring digest.Ring
	// KeySecret is NAMESPACE/NAME of the Secret that the Ring is from.
	KeySecret string
	// NoKey says why the Secret has no usable digest key, and what that means for the installation; empty where it has one, or where the
	// reader merely has no permission on it.
	NoKey string
	// FailingWatch is what the installation has reported of watches that fail; nil if they work.
	FailingWatch *Warning
	// Lease is that of the installation; nil where it elects no leader, or where nothing is known of it.
	Lease *Lease
	// Outside says why the installation does not handle the workload, by its flags; empty if it does.
	Outside string
	// ReloadMissingRequired is as the installation has it (--missing-required=reload).
	ReloadMissingRequired bool
	// RerunFinishedJobs is as the installation has it (--rerun-finished-jobs).
	RerunFinishedJobs bool
	// NotifyOnly is as the installation has it (--webhook-url).
	NotifyOnly bool
	// Refractory is as the installation has it (--refractory).
	Refractory time.Duration
	// Paths lead from what the last reload names below a custom resource, or from what holds one, up to the resource.
	Paths [][]string
	// Warnings are the Warning Events that pod-reloader has sent about the workload, in any order.
	Warnings []Warning
	// Jobs are those of the namespace, if RunMayWait.
	Jobs []cronrun.Job
	// Now is the present time.
	Now time.Time
}

// Report explains one workload. Its JSON form is stable: fields may come, none goes.
type Report struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Verdict is reload, hold or nothing, as the loop would say now; unknown where something could not be read.
	Verdict string `json:"verdict"`
	// Reason explains the Verdict in a sentence fragment.
	Reason string `json:"reason"`
	// Pending says why a new template does not replace the running pods by itself; empty if it does.
	Pending string `json:"pending,omitempty"`
	// partition is how many pods keep an earlier template; empty if Pending has another reason.
	partition string
	// ConfigHash of the pod template; empty if it was never stamped.
	ConfigHash string `json:"configHash,omitempty"`
	// Configuration has a row for every tracked config object.
	Configuration []Row `json:"configuration"`
	// NotTracked says why further objects that the annotations ask for are not tracked.
	NotTracked []string `json:"notTracked,omitempty"`
	// LastReload is the last reload; nil if none is known for the present template.
	LastReload *LastReload `json:"lastReload,omitempty"`
	// Earlier are the reloads before the last one, the newest first, as far as they are recorded.
	Earlier []EarlierReload `json:"earlier,omitempty"`
	// Run says that the run of a CronJob for the last reload waits, and for which Jobs; empty if it is not known to wait.
	Run string `json:"run,omitempty"`
	// Paths lead from what has changed below a custom resource, or from what holds one, up to the workload.
	Paths [][]string `json:"paths,omitempty"`
	// Warnings are the last Warning Events since the last reload, or that it does not end, one a reason, newest first: they say why what
	// is due is not done.
	Warnings []Warning `json:"warnings,omitempty"`
	// FailingWatch is what the installation has reported of watches that fail, so that changes are found late; nil if they work.
	FailingWatch *Warning `json:"failingWatch,omitempty"`
	// Problems are what is wrong, each with what to do.
	Problems []string `json:"problems,omitempty"`
}

// Warning is a Warning Event.
type Warning struct {
	Time   time.Time `json:"time"`
	Age    string    `json:"age"`
	Reason string    `json:"reason"`
	// Message is the text of the Event.
	Message string `json:"message"`
}

// Row compares one config object.
type Row struct {
	Ref string `json:"ref"`
	// Known is what the running pods are known to have, according to the Record.
	Known string `json:"known"`
	// Adopted says that Known was taken as the running content without a rollout.
	Adopted bool `json:"adopted,omitempty"`
	// Now is the present state: "unreadable" where Error says why.
	Now string `json:"now"`
	// Error is why the object could not be read.
	Error string `json:"error,omitempty"`
	// Differs is created, modified, deleted, "" or unknown, whether or not the difference triggers a reload.
	Differs string `json:"differs,omitempty"`
	// Required is true if pods cannot start without the object.
	Required bool `json:"required,omitempty"`
}

// LastReload is a reload with its causes.
type LastReload struct {
	Time    time.Time       `json:"time"`
	Age     string          `json:"age"`
	Cause   string          `json:"cause"`
	Changes []record.Change `json:"changes,omitempty"`
	More    int             `json:"more,omitempty"`
}

// EarlierReload is a reload before the last one. Its changes are not recorded any more.
type EarlierReload struct {
	Time  time.Time `json:"time"`
	Age   string    `json:"age"`
	Cause string    `json:"cause"`
}

// Explain returns the Report.
func Explain(in Input) Report {
	in.States = in.View.Known().Carry(in.States)
	r := Report{
		Kind:          in.Object.Kind.Kind,
		Namespace:     in.Object.Namespace(),
		Name:          in.Object.Name(),
		Pending:       pending(in),
		partition:     in.Object.Partition(),
		ConfigHash:    in.View.Managed[stamp.Hash],
		Configuration: []Row{},
		NotTracked:    notTrackedBeside(in),
		Problems:      problems(in),
	}
	r.LastReload, r.Earlier = lastReloads(in)
	r.Run = run(in)
	for _, path := range in.Paths {
		r.Paths = append(r.Paths, append(slices.Clone(path), strings.ToLower(r.Kind)+"/"+r.Name))
	}
	r.Warnings = warnings(in, r.LastReload)
	r.FailingWatch = in.FailingWatch.At(in.Now)
	decision := policy.Input{
		Namespace: in.Object.Namespace(), Intent: triggers(in), Required: in.View.Required, Known: in.View.Known(), Current: in.States, Ring: in.Ring,
		ReloadMissingRequired: in.ReloadMissingRequired,
	}
	assessment := policy.Assess(decision)
	r.Configuration = rows(in, decision, assessment.Proven())
	under := foreign(in, assessment)
	if under != "" {
		r.Problems = append(r.Problems, under+foreignAdvice)
	}
	r.Verdict, r.Reason = judge(in, assessment.Verdict, r.Configuration, under)
	return r
}

// triggers returns what can cause a reload.
func triggers(in Input) annotation.Intent {
	if in.Object.Kind.CreateOnly {
		return in.View.Intent.AtOnce()
	}
	return in.View.Intent
}

// skippedJob says why the configuration of a Job does not matter any more; empty if it does.
func skippedJob(in Input) string {
	switch {
	case !in.Object.Kind.CreateOnly || jobrun.Decide(in.Object, in.RerunFinishedJobs) != jobrun.Skip:
		return ""
	case in.Object.Controlled():
		return "another object controls the Job: it is not created again"
	default:
		return "the Job has finished: it is created again only with --rerun-finished-jobs"
	}
}

// unchangedJob says why a Job is not created again although its configuration matters; empty if it can be.
func unchangedJob(in Input) string {
	switch {
	case !in.Object.Kind.CreateOnly:
		return ""
	case jobrun.Decide(in.Object, in.RerunFinishedJobs) == jobrun.Adopt && !in.NotifyOnly:
		return "the Job is suspended: its pods start with the present configuration"
	case len(triggers(in).Tracked) == 0:
		return "the pod template of a Job cannot be changed: it is stamped once, when it is created"
	default:
		return ""
	}
}

// lastReloads returns the last reload and those before it.
func lastReloads(in Input) (*LastReload, []EarlierReload) {
	last, ok := in.View.Managed.LastReload(in.Now)
	if !ok {
		return nil, nil
	}
	var earlier []EarlierReload
	for _, past := range last.Before {
		earlier = append(earlier, EarlierReload{Time: past.Time, Age: age(in.Now, past.Time), Cause: past.Cause})
	}
	return &LastReload{
		Time:    last.Time,
		Age:     age(in.Now, last.Time),
		Cause:   last.Cause,
		Changes: last.Changes,
		More:    last.More,
	}, earlier
}

func age(now, then time.Time) string { return now.Sub(then).Truncate(time.Second).String() }

// warnings returns the newest Warning for each reason, newest first. Those before the last reload are left out, unless they outlive it;
// where the time of that lies in the future, one of the clocks is wrong, and all are returned.
func warnings(in Input, last *LastReload) []Warning {
	newest := slices.SortedStableFunc(slices.Values(in.Warnings), func(a, b Warning) int { return b.Time.Compare(a.Time) })
	var kept []Warning
	for _, w := range newest {
		same := func(other Warning) bool { return other.Reason == w.Reason }
		before := last != nil && last.Time.Before(in.Now) && w.Time.Before(last.Time)
		if before && !outlivesReload(in, w) || slices.ContainsFunc(kept, same) {
			continue
		}
		w.Age = age(in.Now, w.Time)
		kept = append(kept, w)
	}
	return kept
}

// outlivesReload reports whether what a Warning of the loop reports holds also after a reload: the loop does not report it again within an
// hour. What the Problems say anew is not among it.
func outlivesReload(in Input, w Warning) bool {
	switch w.Reason {
	case "RecordContested": // one look at the workload does not show whether it has ended
		return true
	case reasonRunRefused:
		return !hasRun(in, w.Time)
	case "RequestContested":
		return in.View.Managed[stamp.Dummy] != ""
	case "RecordTooLarge", "AdoptionFailed":
		return in.View.Known().Record.Key == ""
	case "PauseContested", "ResumeFailed":
		action, _ := pauseOf(in).Decide(in.Now)
		return action != pause.None
	default:
		return false
	}
}

// hasRun reports whether the last reload has run the CronJob, unlike the one before that or an earlier one, whose run was refused: the loop
// reports that right before a reload, and again for each one, since the text names the Job that it could not make. It reports that right after
// the reload where a write of a user brought the change: such a Warning is shown for one reload longer. Some reloads for a change have run
// nothing, and their last-reload does not show it: those that a client asked for, and releases before the present leader led.
func hasRun(in Input, refused time.Time) bool {
	last, _ := in.View.Managed.LastReload(in.Now)
	changes := cronrun.ChangesOfWrite(last)
	if last.Cause == record.CauseConfigChange {
		changes = policy.ChangesOf(last)
	}
	return len(last.Before) > 0 && refused.Before(last.Before[0].Time) && cronrun.IsDue(in.Object.Kind, in.View.Intent, changes)
}

// problems lists what is wrong with the annotations of users, with what they name, and with the managed annotations.
func problems(in Input) []string {
	var found []string
	for _, p := range in.Problems {
		found = append(found, p.Message)
	}
	absent := in.View.Missing(in.View.Intent.Refs(), in.States)
	if len(absent) > 0 && notHandledReason(in) == "" {
		found = append(found, stamp.NotFound(reference.List(absent, reference.MaxNamed)))
	}
	if _, stored := in.View.Managed[stamp.Dummy]; stored {
		found = append(found, storedRequest(in))
	}
	if text, ok := in.View.Managed[stamp.Record]; ok {
		switch _, err := record.Parse(text); {
		case err == nil:
		case errors.Is(err, record.ErrNewer):
			found = append(found, err.Error()+"; until then, nothing is compared")
		default:
			found = append(found, err.Error()+"; only the config-hash is compared")
		}
	}
	if idle := leaderless(in); idle != "" {
		found = append(found, idle)
	}
	return found
}

// storedRequest says why a reload request is stored, and what to do. The webhook leaves one to another installation where nothing is tracked
// here, but something is known of the pods.
func storedRequest(in Input) string {
	const unhandled = "the workload itself has %s: no webhook has handled the last reload request, or it "
	text := unhandled + "could not check it: repeat one that got a warning once this annotation is gone; " +
		"else check that the MutatingWebhookConfiguration exists and its Service answers"
	if len(in.View.Intent.Tracked) == 0 && in.View.Unresolved == nil && !in.View.Excluded && in.View.IsRecorded() {
		text = unhandled + "left it to another installation: this one tracks no object of the workload, but the config-record names some, " +
			"or is missing beside a config-hash. " +
			"Unless another one handles the workload, let its annotations name an object that exists, and repeat the request once this annotation is gone. " +
			"If it got no warning, check that the MutatingWebhookConfiguration exists and its Service answers"
	}
	return fmt.Sprintf(text, in.Keys.ConfigHash)
}
