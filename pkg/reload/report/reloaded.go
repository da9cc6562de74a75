package report

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/outbox"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/record"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/stamp"
)

// reportedFor is how long a reload needs an Event. By default the API server forgets Events after an hour: of an older
// reload nothing says whether it had one.
const reportedFor = 50 * time.Minute

// EmitReloads emits an Event for each reload that the last-reload annotation names, whichever process made it. The annotation
// is read whether it belongs to the present template or not: what it names has happened. Only where the template lacks the stamp
// that it names, nothing has: it was not stored, and action.ReportLostStamp reports that. It reports whether the annotation is new.
func (r *Reporter) EmitReloads(s Subject) bool {
	text := s.Managed[stamp.LastReload]
	if s.Managed[stamp.Hash] == "" {
		if last, err := record.ParseLastReload(text); err != nil || last.Hash != "" {
			return false
		}
	}
	isNew, open := r.with.State.Reports.Observe(s.Key, text, r.with.Now())
	if !open {
		return isNew
	}
	last, err := record.ParseLastReload(text)
	if err != nil || r.emitAll(s, last) {
		r.with.State.Reports.MarkDecided(s.Key)
	}
	return isNew
}

// emitAll sends the Events of a reload and of those before it. It reports whether all are decided: of the reloads from
// before this process leads nothing is known until the Events of earlier leaders are listed. The reloads before that of a Job
// were those of the Jobs that it replaces, also where they were created within the second that a creation time names.
func (r *Reporter) emitAll(s Subject, last record.LastReload) bool {
	decided := true
	for n, reload := range slices.Backward(last.All()) {
		if r.with.Now().Sub(reload.Time) >= reportedFor || beforeCreation(s, reload) || n > 0 && s.Object.Kind.CreateOnly {
			continue
		}
		fresh := r.isFresh(reload)
		exists, known := r.catchUp.exists(s.Key.Namespace, eventName(s, reload))
		switch {
		case fresh || known && !exists:
			r.emit(s, reload, emission{fresh: fresh, last: n == 0})
		case !known:
			decided = false
		}
	}
	if !decided && !r.catchUp.await(s.Key) {
		return r.emitAll(s, last) // they were listed meanwhile
	}
	return decided
}

// EmitOwn sends the Event of a reload that this process has just made. The watch may show it late, or never. Where it is the
// first stamp, the watch must show that the template has it: the schema of a kind may drop annotations there. It cannot show a last reload
// that did not fit, nor which Job was run.
func (r *Reporter) EmitOwn(s Subject, last record.LastReload) {
	shown := s.Managed[stamp.Hash] == "" && last.Hash != "" && s.Ran == "" && !s.Unwritten
	if last.Time.IsZero() || shown {
		return // a reload without a time is none that can be read
	}
	r.emit(s, last, emission{fresh: true, last: true})
	r.emitAll(s, last)
}

// isFresh reports whether a reload was made while this process leads.
func (r *Reporter) isFresh(reload record.LastReload) bool {
	since, leads := r.with.Leads.Since(r.with.Now())
	return leads && !reload.Time.Before(since)
}

// mayBeCounted reports whether an earlier leader may have counted a reload without an Event: it led until countedAfter. That this leader
// learns late of the reload, as from a watch that has failed, is no sign of it.
func (r *Reporter) mayBeCounted(reload record.LastReload) bool {
	now := r.with.Now()
	since, leads := r.with.Leads.Since(now)
	if !leads {
		since = now
	}
	return since.Sub(reload.Time) >= countedAfter
}

// IsOfThisLeader reports whether a reload of a workload was made while this process leads, and not so long ago that it is not reported any
// more. One that is older than the workload is of another one.
func (r *Reporter) IsOfThisLeader(s Subject, reload record.LastReload) bool {
	return r.isFresh(reload) && r.with.Now().Sub(reload.Time) < reportedFor && !beforeCreation(s, reload)
}

// beforeCreation reports whether a reload is older than the workload: then the annotation was copied from another one.
func beforeCreation(s Subject, reload record.LastReload) bool {
	created := s.Object.Created()
	return !created.IsZero() && reload.Time.Before(created)
}

// emission says how the Event of a reload is sent.
type emission struct {
	// fresh says that the reload was made while this process leads, last that no other reload followed it.
	fresh, last bool
}

// emit sends the Event of a reload, once. The process that creates the Event counts the reload and offers the alert, so that
// two leaders do not both do that; of an Event that cannot be created, the leader does that after countedAfter.
func (r *Reporter) emit(s Subject, reload record.LastReload, e emission) {
	name := eventName(s, reload)
	if !r.with.State.Reports.Report(s.Key, name, r.with.Now()) {
		return
	}
	effect, pending := stamped, ""
	if e.last {
		effect, pending = s.effect(reload), s.pending()
	}
	m := r.message(s, causesOf(reload))
	m.Type, m.Reason, m.Action, m.Note = corev1.EventTypeNormal, reasonReloaded, action, sentence(reload, effect)
	if reload.Time.Before(m.Time) {
		m.Time = reload.Time
	}
	// Many messages may wait for long: they keep no more of the workload than they need.
	reloaded, about := labelsOf(s, reload), alertAbout(s, reload, pending)
	age := r.ageOf(reload, e.fresh)
	count := &count{age: age, fresh: e.fresh, due: e.fresh || !r.mayBeCounted(reload), once: func() {
		r.metrics.reloaded(reloaded)
		r.with.Alerts.Offer(about)
	}}
	r.with.Out.Put(outbox.Message{
		Event:   m.Event(name),
		Subject: s.Key.String(),
		Life:    reportedFor - max(age(), 0),
		Failed:  count.failed,
		Done:    count.done,
	})
}

// ageOf returns a function for the age of a reload. The clock may be set forward meanwhile, and for a fresh reload it may be ahead of the
// clock of the replica that stamped it. Neither makes a reload older: a later leader does not see that. So a leader that learns late of a
// fresh reload also counts it late, and not at all if it ends before.
func (r *Reporter) ageOf(reload record.LastReload, fresh bool) func() time.Duration {
	taken, before := time.Now(), r.with.Now().Sub(reload.Time)
	if fresh {
		before = min(before, 0)
	}
	return func() time.Duration { return min(r.with.Now().Sub(reload.Time), before+time.Since(taken)) }
}

// countedAfter is how long after a reload it is counted although its Event could not be created: the permission to do so may be missing
// for good. A leader that begins later does not count it, and one that begins earlier only where the permission is missing: otherwise its
// predecessor may have created the Event, and counted.
const countedAfter = 5 * time.Minute

// count decides whether this process counts a reload in the metrics. Its methods are not called concurrently.
type count struct {
	// age is how long ago the reload was made.
	age func() time.Duration
	// fresh says that the reload was made while this process leads, due that no earlier leader has counted it.
	fresh, due bool
	counted    bool
	once       func()
}

// failed counts a reload whose Event could not be created for a long time.
func (c *count) failed(err error) {
	if c.due && c.age() >= countedAfter && (c.fresh || apierrors.IsForbidden(err)) {
		c.now()
	}
}

func (c *count) done(outcome outbox.Outcome) {
	if outcome == outbox.Created && c.due || outcome == outbox.Dropped && c.fresh {
		c.now()
	}
}

func (c *count) now() {
	if !c.counted {
		c.counted = true
		c.once()
	}
}

// causesOf returns the config objects that a reload names.
func causesOf(reload record.LastReload) []reference.Ref {
	var causes []reference.Ref
	for _, c := range reload.Changes {
		ref, _ := reference.Parse(c.Ref) // what cannot be read is no object, but counts as a cause
		causes = append(causes, ref)
	}
	return causes
}

// sentence explains a reload in words.
func sentence(last record.LastReload, effect string) string {
	var b strings.Builder
	b.WriteString(effect)
	switch causes := describe(last); {
	case causes != "":
		b.WriteString(": " + causes)
	case last.Cause == record.CauseVerifiedReload:
		b.WriteString(": requested by a client with a verified digest")
	case last.Cause == record.CauseListEdit:
		b.WriteString(": the list of config objects was edited")
	case last.Cause == record.CauseConfigChange:
		b.WriteString(": its configuration has changed")
	}
	if last.Cause == record.CauseRelease {
		b.WriteString(", together with a release")
	}
	return b.String()
}

func describe(last record.LastReload) string {
	var parts []string
	for _, c := range last.Changes {
		parts = append(parts, c.String())
	}
	if unnamed := record.Unnamed(len(parts), last.More); unnamed != "" {
		parts = append(parts, unnamed)
	}
	return strings.Join(parts, ", ")
}

// causeKinds returns the kind of config object that caused a reload, or the cause where no object changed, as a label for
// metrics. It is bounded, whatever the annotation contains.
func causeKinds(last record.LastReload) string {
	label := last.Cause
	for i, c := range last.Changes {
		kind, _, _ := strings.Cut(c.Ref, "/")
		if reference.Kind(kind).Custom() {
			kind = labelCustom
		}
		if i > 0 && kind != label {
			return "several"
		}
		label = kind
	}
	if !slices.Contains(causeLabels(), label) {
		return "other"
	}
	return label
}

// labelCustom stands for all custom resources.
const labelCustom = "customresource"

func causeLabels() []string {
	return []string{
		string(reference.ConfigMap), string(reference.Secret), string(reference.SecretProviderClass), string(policy.Any.Kind), labelCustom,
		record.CauseConfigChange, record.CauseVerifiedReload, record.CauseListEdit, record.CauseRelease,
	}
}
