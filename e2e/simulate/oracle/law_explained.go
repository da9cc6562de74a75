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
	// noted is when the annotation was written last; overtaken means that it was written again before the program surely saw it, returned
	// that an earlier one came back.
	noted               time.Time
	overtaken, returned bool
	// unannotatedAt is the version of the last restart for whose annotation there was no space, unannotated how many there were: only the
	// process that asked for one can report it.
	unannotatedAt int64
	unannotated   int
	// misdated is how many reloads have a time from a wrong clock.
	misdated int
	// lost is how many reloads a new leader may not know of, since earlier ones could not write their Events.
	lost int
	// excused is how many reloads had no Event when the workload became ineligible last, or its annotations were edited by hand: they need
	// none.
	excused int
	// cramped means that there was no space for it.
	cramped bool
	// unrecorded is the last version at which there was no space for what the program records of the pods' configuration.
	unrecorded int64
}

const (
	// leftToController is how many bytes the program leaves to the Deployment controller, for its annotations of a ReplicaSet.
	leftToController = 2560
	// storyNeeds is how many bytes the shortest annotation that explains a restart needs beside them.
	storyNeeds = leftToController + 512
	// recordNeeds is how many bytes the program needs for all that it keeps.
	recordNeeds      = 32 << 10
	recordAnnotation = "config-record"
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
	// More is how many changes it counts without their names.
	More int
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

// explainedLaw is the law "explained" for annotations and Events.
type explainedLaw struct {
	*ledger
	passive

	// handedOver means that a later leader may have reported reloads of an earlier one.
	handedOver bool
}

func (l *explainedLaw) owes(time.Time) bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool {
		return l.reloadsReported(w) < w.story.restarts-l.unreportable(w)
	})
}

// stamped is the law "explained" for the annotation: it is looked at when a template has changed.
func (l *explainedLaw) stamped(r restamp) {
	w, c, before, s := r.workload, r.commit, r.before, r.stamp
	if !r.byProgram() {
		return
	}
	w.story.restarts++
	w.story.last, w.story.lastVersion = c.At, c.Version
	if w.story.first.IsZero() {
		w.story.first = c.At
	}
	l.count("restarts")
	if !w.eligible {
		l.excuseUnreported(w)
	}
	name := l.options.Prefix + reloadAnnotation
	value := world.Text(world.Annotations(c.New), name)
	if value == "" || value == world.Text(world.Annotations(c.Old), name) {
		if l.bytesLeftOn(c.New) < storyNeeds {
			w.story.unannotatedAt = c.Version
			w.story.unannotated++
			l.count("restarts excused: no space for an annotation")
			w.story.cramped = true
			return
		}
		if l.isRemoved(w, stripsReload, c) {
			w.story.unannotatedAt = c.Version
			w.story.unannotated++
			l.count("restarts excused: another webhook removes the annotation")
			w.story.cramped = true
			return
		}
		if w.lastHandEdit <= before.version && !before.foreign {
			l.violate(c.At, broken{"explained", w.id.String(), "annotation-missing"},
				"the program changed the template at %s (version %d) without a new %s", l.when(c.At), c.Version, name)
		}
		return
	}
	var last lastReload
	if err := json.Unmarshal([]byte(value), &last); err != nil {
		l.violate(c.At, broken{"explained", w.id.String(), "annotation-broken"}, "%s is no JSON at %s: %q", name, l.when(c.At), value)
		return
	}
	l.judgeTime(w, s, last)
	l.judgeChanges(w, before, s, last)
	l.judgeNamed(w, before, s, last)
}

// reportable is how many reloads may have an Event: what annotations report, which includes those that users caused, and what had no space
// for one.
func (s story) reportable() int {
	return max(len(s.annotated)+s.unannotated, s.restarts)
}

// closeTo is how far the time in the annotation may be from that of the request.
const closeTo = 2 * time.Second

func (l *explainedLaw) judgeTime(w *workload, s *stamp, last lastReload) {
	at, err := time.Parse(time.RFC3339, last.Time)
	if err != nil {
		l.violate(s.at, broken{"explained", w.id.String(), "annotation-broken"},
			"the time of the last reload is %q at %s", last.Time, l.when(s.at))
		return
	}
	if l.faults.clocksWrong(s.at) || !l.healthy(w, s.arrivedAt) {
		return
	}
	if at.Before(s.arrivedAt.Add(-closeTo)) || at.After(s.at.Add(closeTo)) {
		l.violate(s.at, broken{"explained", w.id.String(), "time"},
			"the last reload was made at %s, but its annotation says %s", l.when(s.at), l.when(at))
	}
}

// stored records a new last-reload annotation, whichever request brought it, and of what has no space.
func (l *explainedLaw) stored(c world.Commit) {
	w := l.workloads[idOf(c.Key)]
	if w == nil || c.Call == nil || c.New == nil {
		return // controllers write status and their own annotations
	}
	if l.lacksSpaceForRecord(c.New) {
		w.story.unrecorded = c.Version
	}
	name := l.options.Prefix + reloadAnnotation
	value := world.Text(world.Annotations(c.New), name)
	if value == "" || value == world.Text(world.Annotations(c.Old), name) {
		return
	}
	if !w.story.annotated[value] && l.misdated(value, c.At) {
		w.story.misdated++
	}
	w.story.note(value, c.At, l.healthy(w, w.story.noted))
	if c.Old == nil {
		w.story.unannotated += copiedLaterReload(value, c.At)
	}
}

// note records an annotation that is written. Healthy means that the program has surely seen the one before.
func (s *story) note(value string, at time.Time, healthy bool) {
	if s.annotated == nil {
		s.annotated = map[string]bool{}
	}
	s.returned = s.returned || s.annotated[value]
	s.overtaken = s.overtaken || !s.noted.IsZero() && (at.Sub(s.noted) < soon || !healthy)
	s.annotated[value], s.noted = true, at
}

// misdated reports whether an annotation that is written now has its time from a wrong clock.
func (l *explainedLaw) misdated(value string, now time.Time) bool {
	var last lastReload
	if !l.faults.clocksWrong(now) || json.Unmarshal([]byte(value), &last) != nil {
		return false
	}
	at, err := time.Parse(time.RFC3339, last.Time)
	return err == nil && at.Sub(now).Abs() > closeTo
}

// copiedLaterReload returns how many earlier reloads an annotation names that was copied from another workload, and that a wrong
// clock has put after the creation of this one: by nothing else can the program know that they were not its own.
func copiedLaterReload(value string, created time.Time) int {
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

// settled is the law "explained" for Events.
func (l *explainedLaw) settled(w *workload, now time.Time) {
	reloads, events := w.story.restarts, l.reloadsReported(w)
	if most := w.story.reportable(); events > most {
		l.violate(now, broken{"explained", w.id.String(), "event-doubled" + l.doubledUnder(w)},
			"%d Events report reloads, but only %d were made", events, most)
	}
	l.judgeNotes(w, now)
	if reloads == 0 || l.mayLackEvent(w, now) {
		return
	}
	l.count("Events judged")
	if events < reloads-l.unreportable(w) {
		l.violate(now, broken{"explained", w.id.String(), "event-missing" + l.missedUnder(w)},
			"the program restarted it %d times, the last time at %s, but only %d Events say so",
			reloads, l.when(w.story.last), events)
	}
}

// succeeded records what a new leader does not know: of the reloads without an Event, the annotation names the last ones only.
func (l *explainedLaw) succeeded() {
	l.handedOver = true
	for _, w := range l.all {
		w.story.lost += max(w.story.reportable()-w.story.lost-w.story.excused-l.reloadsReported(w)-mostNamed, 0)
	}
}

// unreportable returns how many reloads may have no Event: those that are excused, and those of which the program does not know any more,
// since Events could not be written for so long.
func (l *explainedLaw) unreportable(w *workload) int {
	if l.faults.never() {
		return w.story.excused
	}
	sum := 0
	for _, other := range l.all {
		sum += other.story.reportable()
	}
	return w.story.excused + w.story.lost + max(sum-mostWaiting, 0)
}

// mayLackEvent reports whether an Event may rightly be missing.
func (l *explainedLaw) mayLackEvent(w *workload, now time.Time) bool {
	calm, known := l.calmSince(w)
	allowed, written := l.eventsAllowedSince()
	calm = later(calm, allowed)
	switch {
	case w.gone || !w.eligible, !known, !written:
		return true
	case w.story.cramped && !l.faults.never():
		return true // only the process that asked for the restart knows of it
	case now.Sub(later(w.story.last, calm)) < recovery:
		return true // it may still come
	}
	// Reloads are reported for 50 minutes; faults that last longer may hide one.
	return calm.Sub(w.story.first) > repeat && calm.Sub(w.story.last) > repeat-longRecovery
}
