package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// story is what is known of a workload's reloads.
type story struct {
	// restarts counts those that the program made for sure, annotated those that a last-reload annotation reports.
	restarts  int
	annotated map[string]bool
	// last is when the last of them was made, first when the first one was.
	first, last time.Time
	lastVersion int64
	// noted is when the annotation was written last; overtaken means that it was soon written again, returned that an earlier
	// one came back.
	noted               time.Time
	overtaken, returned bool
	// unannotatedAt is the version of the last restart for whose annotation there was no room, unannotated how many there were: only the
	// process that asked for one can report it.
	unannotatedAt int64
	unannotated   int
	// lost is how many reloads a new leader may not know of, since earlier ones could not write their Events.
	lost int
	// cramped means that there was no space for it.
	cramped bool
	// unrecorded is the last version at which there was no room for what the program records of the pods' configuration.
	unrecorded int64
}

const (
	// storyNeeds is how many bytes the shortest annotation that explains a restart needs, those included that are left to the
	// Deployment controller.
	storyNeeds = 1 << 10
	// recordNeeds is how many bytes the program needs for all that it keeps.
	recordNeeds = 32 << 10
	recordMark  = "config-record"
	// mostNamed is how many reloads before the last one a last-reload annotation names: the last may be one that the new leader makes
	// before it knows which Events exist.
	mostNamed = 5
	// mostWaiting is how many Events of reloads the program keeps for all workloads while they cannot be written.
	mostWaiting = 1000
)

// lastReload is the annotation, as far as it is judged.
type lastReload struct {
	Time    string
	Changes []reloadCause
	// Before are the reloads before it.
	Before []struct{ Time string }
}

// reloadCause is a change that the annotation names.
type reloadCause struct{ Ref, Type string }

// of returns the config object that changed; false for what is not known.
func (c reloadCause) of() (ref, bool) {
	if r, ok := referentOf(c.Ref); ok {
		return r, true
	}
	kind, name, ok := strings.Cut(c.Ref, "/")
	r := ref{kind + "s", name}
	return r, ok && isConfig(r.plural) && slices.Contains([]string{"created", "modified", "deleted"}, c.Type)
}

// judgeStory is the law "explained" for the annotation: it is looked at when a template has changed.
func (o *Oracle) judgeStory(w *workload, c world.Commit, before, s *stamp) {
	if !s.program || s.marks == before.marks {
		return
	}
	w.story.restarts++
	w.story.last, w.story.lastVersion = c.At, c.Version
	if w.story.first.IsZero() {
		w.story.first = c.At
	}
	o.count("restarts")
	name := o.options.Prefix + reloadMark
	value := text(annotationsOf(c.New), name)
	if value == "" || value == text(annotationsOf(c.Old), name) {
		if o.bytesLeftOn(c.New) < storyNeeds {
			w.story.unannotatedAt = c.Version
			w.story.unannotated++
			o.count("restarts excused: no space for an annotation")
			w.story.cramped = true
			return
		}
		if w.fumbled <= before.version && !before.foreign {
			o.violate(c.At, broken{"explained", w.id.String(), "annotation-missing"},
				"the program changed the template at %s (version %d) without a new %s", o.when(c.At), c.Version, name)
		}
		return
	}
	var last lastReload
	if err := json.Unmarshal([]byte(value), &last); err != nil {
		o.violate(c.At, broken{"explained", w.id.String(), "annotation-broken"}, "%s is no JSON at %s: %q", name, o.when(c.At), value)
		return
	}
	o.judgeTime(w, s, last)
	o.judgeChanges(w, before, s, last)
}

// reportable is how many reloads may have an Event: what annotations report, which includes those that users caused, and what had no room
// for one.
func (s story) reportable() int {
	return max(len(s.annotated)+s.unannotated, s.restarts)
}

// closeTo is how far the time in the annotation may be from that of the request.
const closeTo = 2 * time.Second

func (o *Oracle) judgeTime(w *workload, s *stamp, last lastReload) {
	at, err := time.Parse(time.RFC3339, last.Time)
	if err != nil {
		o.violate(s.at, broken{"explained", w.id.String(), "annotation-broken"}, "the time of the last reload is %q at %s", last.Time, o.when(s.at))
		return
	}
	if o.faults.clocksWrong(s.at) || !o.healthy(w, s.arrivedAt) {
		return
	}
	if at.Before(s.arrivedAt.Add(-closeTo)) || at.After(s.at.Add(closeTo)) {
		o.violate(s.at, broken{"explained", w.id.String(), "time"}, "the last reload was made at %s, but its annotation says %s", o.when(s.at), o.when(at))
	}
}

// judgeChanges looks whether what is named as a cause has changed since what was known of the template before.
func (o *Oracle) judgeChanges(w *workload, before, s *stamp, last lastReload) {
	if w.uncertain(before) || before.foreign || !before.eligible || w.relisted > before.version {
		return
	}
	since := before.arrived
	for _, p := range before.periods {
		since = min(since, p.from)
	}
	for _, change := range last.Changes {
		r, ok := change.of()
		if _, listed := w.tracked[r]; !ok || !listed {
			continue
		}
		o.count("causes judged")
		if !o.changedSince(w, before.carried[r], r, since, s.version) {
			o.violate(s.at, broken{"explained", w.id.String(), "cause"}, "the reload of %s names %s as %s, but it has not changed since %s",
				o.when(s.at), change.Ref, change.Type, o.when(before.at))
		}
	}
}

// changedSince reports whether an object has changed until a version, since another one or since what is carried of it.
func (o *Oracle) changedSince(w *workload, carried []*period, r ref, since, until int64) bool {
	for _, p := range carried {
		since = min(since, p.from)
	}
	h := o.contents.of(w.id.namespace, r)
	return len(h.within(since, until)) > 0 || isReferent(r.plural) && h.touchedWithin(since, until)
}

// bytesLeftOn returns how many bytes the annotations of others leave on an object.
func (o *Oracle) bytesLeftOn(object world.Object) int {
	return annotationLimit - o.sizeOfOthers(annotationsOf(object))
}

// noteStory takes note of a new last-reload annotation, whichever request brought it, and of what has no room.
func (o *Oracle) noteStory(w *workload, c world.Commit) {
	if o.recordOf(c.New) == "" && o.bytesLeftOn(c.New) < recordNeeds {
		w.story.unrecorded = c.Version
	}
	name := o.options.Prefix + reloadMark
	value := text(annotationsOf(c.New), name)
	if value == "" || value == text(annotationsOf(c.Old), name) {
		return
	}
	if w.story.annotated == nil {
		w.story.annotated = map[string]bool{}
	}
	w.story.returned = w.story.returned || w.story.annotated[value]
	w.story.overtaken = w.story.overtaken || c.At.Sub(w.story.noted) < soon
	w.story.annotated[value], w.story.noted = true, c.At
	if c.Old == nil {
		w.story.unannotated += o.copiedFromTheFuture(value, c.At)
	}
}

// copiedFromTheFuture returns how many earlier reloads an annotation names that was copied from another workload, and that a wrong
// clock has put after the creation of this one: by nothing else can the program know that they were not its own.
func (o *Oracle) copiedFromTheFuture(value string, created time.Time) int {
	var last lastReload
	if json.Unmarshal([]byte(value), &last) != nil {
		return 0
	}
	count := 0
	for _, earlier := range last.Before {
		if at, err := time.Parse(time.RFC3339, earlier.Time); err == nil && !at.Before(created.Truncate(time.Second)) {
			count++
		}
	}
	return count
}

// judgeStoryAtQuiet is the law "explained" for Events.
func (o *Oracle) judgeStoryAtQuiet(w *workload, now time.Time) {
	reloads, events := w.story.restarts, o.reloadsReported(w)
	if most := w.story.reportable(); events > most {
		o.violate(now, broken{"explained", w.id.String(), "event-doubled" + o.doubledUnder(w)}, "%d Events report reloads, but only %d were made", events, most)
	}
	if reloads == 0 || o.mayLackEvent(w, now) {
		return
	}
	o.count("Events judged")
	if events < reloads-o.unreportable(w) {
		o.violate(now, broken{"explained", w.id.String(), "event-missing" + o.missedUnder(w)}, "the program restarted it %d times, the last time at %s, but only %d Events say so",
			reloads, o.when(w.story.last), events)
	}
}

// inheritStories takes note of what a new leader does not know: of the reloads without an Event, the annotation names the last ones only.
func (o *Oracle) inheritStories() {
	for _, w := range o.all {
		w.story.lost += max(w.story.reportable()-w.story.lost-o.reloadsReported(w)-mostNamed, 0)
	}
}

// unreportable returns how many reloads may have no Event, since these could not be written for so long that the program does not know all
// of them any more.
func (o *Oracle) unreportable(w *workload) int {
	if o.faults.never() {
		return 0
	}
	sum := 0
	for _, other := range o.all {
		sum += other.story.reportable()
	}
	return w.story.lost + max(sum-mostWaiting, 0)
}

// mayLackEvent reports whether an Event may rightly be missing.
func (o *Oracle) mayLackEvent(w *workload, now time.Time) bool {
	calm, known := o.calmSince(w)
	allowed, written := o.eventsAllowedSince()
	calm = later(calm, allowed)
	switch {
	case w.gone || !w.eligible, !known, !written:
		return true
	case w.ineligibleAt > 0 && w.story.restarts > 0 && w.changed.After(w.story.first):
		return true // it was let alone for a while
	case w.fumbled > 0:
		return true // the annotation that reports it may have been taken away
	case w.story.cramped && !o.faults.never():
		return true // only the process that asked for the restart knows of it
	case now.Sub(later(w.story.last, calm)) < recovery:
		return true // it may still come
	}
	// Reloads are reported for 50 minutes; faults that last longer may hide one.
	return calm.Sub(w.story.first) > repeat && calm.Sub(w.story.last) > repeat-longRecovery
}
