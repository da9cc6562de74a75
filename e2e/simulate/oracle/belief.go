package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// period is a range of versions, the ends included. The content that the program took for that of the pods was read within.
type period struct {
	from, to int64
	// open means that the program may not have had a chance yet to look: the period goes on.
	open bool
	// waits means that a write of the program shows that it has looked, or minutes in which it does not say that it cannot.
	waits bool
	// blind means that it began with a record that was made before a digest key was lost.
	blind bool
	// unrecorded means that it lasts for as long as the workload has no record.
	unrecorded bool
	// opened is when the period began.
	opened time.Time
}

// believed is a set of contents that the program may take for those of the pods of one object.
type believed map[int]bool

// addPeriod adds the contents that an object had within a period.
func (b believed) addPeriod(h *history, p *period, last int64) {
	to := p.to
	if p.open {
		to = last
	}
	b[h.at(p.from)] = true
	for _, e := range h.within(p.from, to) {
		b[e.content] = true
	}
}

// only reports whether there is one content in the set, and which.
func (b believed) only() (int, bool) {
	if len(b) != 1 {
		return 0, false
	}
	for content := range b {
		return content, true
	}
	return 0, false
}

// adoption is a moment at which the program may take what it finds for what the pods run with, although no stamp was made.
type adoption struct {
	version int64
	period  *period
	// of is the object that it is about; all of them if its name is empty.
	of ref
	// lost means that earlier digests mean nothing any more; precise that it makes only one object uncertain, and no restart.
	lost, precise bool
	// listed means that a list names its object newly.
	listed bool
}

func (a *adoption) covers(r ref) bool { return a.of.name == "" || a.of == r }

// follows reports whether an adoption concerns what a stamp says. A stamp that was asked for before a digest key was lost may be one under
// that key, also where it is stored later. One without a Record proves nothing by itself.
func (a *adoption) follows(s *stamp) bool {
	return a.version > s.version || a.lost && a.version > s.arrived || a.period.unrecorded && a.version == s.version
}

// knowledge returns when the program may have read the content of an object that it takes for that of the pods of a stamp.
func (w *workload) knowledge(s *stamp, r ref) []*period {
	return w.knowledgeBefore(s, r, math.MaxInt64)
}

// knowledgeBefore is knowledge without what the program may adopt from a version on.
func (w *workload) knowledgeBefore(s *stamp, r ref, version int64) []*period {
	var known []*period
	if w.tracked[r] <= s.version {
		known = slices.Concat(s.periods, s.carried[r])
	}
	for _, a := range w.adoptions {
		if a.follows(s) && a.covers(r) && a.version < version {
			known = append(known, a.period)
		}
	}
	return known
}

// beliefs returns what the program may take for the content of the pods of a stamp.
func (l *configLog) beliefs(w *workload, s *stamp, r ref) believed {
	set := believed{}
	h := l.contents.of(w.id.namespace, r)
	for _, p := range w.knowledge(s, r) {
		set.addPeriod(h, p, l.version)
	}
	return set
}

// believes reports whether the program may take a content for that of the pods of a stamp.
func (l *configLog) believes(w *workload, s *stamp, r ref, content int) bool {
	h := l.contents.of(w.id.namespace, r)
	return slices.ContainsFunc(w.knowledge(s, r), func(p *period) bool { return l.hadContent(h, p, content) })
}

// hadContent reports whether an object had a content at some time of a period.
func (l *configLog) hadContent(h *history, p *period, content int) bool {
	set := believed{}
	set.addPeriod(h, p, l.version)
	return set[content]
}

// uncertain reports whether the program may not have had a chance yet to look at what belongs to a stamp.
func (w *workload) uncertain(s *stamp) bool {
	return w.uncertainOfAll(s) || w.adopts(s, func(a *adoption) bool { return a.listed })
}

// uncertainOfAll is uncertain, but for what is only listed newly: an edit of lists that does not stamp restarts nothing.
func (w *workload) uncertainOfAll(s *stamp) bool {
	return slices.ContainsFunc(s.periods, func(p *period) bool { return p.open }) ||
		w.adopts(s, func(a *adoption) bool { return !a.precise && !a.listed })
}

// looksInTime reports whether what the program has found by the next stamp, where it may only have looked at one since, is what was there
// since then. Where the write brought managed annotations of another workload or template, it may have compared these instead; and where
// its watches were late, it may have found what was there before.
func (l *configLog) looksInTime(w *workload, before, s *stamp) bool {
	if before.mayBringOthers() {
		return false
	}
	if !w.uncertain(before) {
		return true
	}
	since := before.arrivedAt.Add(-readBefore)
	return l.watched(w, since, s.at) && !slices.ContainsFunc(w.refs, func(r ref) bool {
		return len(l.contents.of(w.id.namespace, r).within(l.versionAt(since), before.arrived)) > 0
	})
}

// adopts reports whether the program may still have to look at what it adopts since a stamp, of some kind.
func (w *workload) adopts(s *stamp, kind func(*adoption) bool) bool {
	return slices.ContainsFunc(w.adoptions, func(a *adoption) bool { return a.follows(s) && a.period.open && kind(a) })
}

// chance is how long the program surely needs at most to look at a workload, once it works as usual.
const chance = 20 * time.Second

// readoption is how long the program may take to write a workload again after a digest key was lost.
const readoption = 2 * time.Minute

// saysBlind reports whether managed annotations made with a lost key came back, and a Warning Event says so: two installations must not
// fight about a workload. The Event is not repeated where such managed annotations come again before the program has written the workload.
func (l *ledger) saysBlind(w *workload, p *period) bool {
	since := p.opened
	for _, earlier := range w.open {
		if earlier.open && earlier.waits && earlier.opened.Before(since) {
			since = earlier.opened
		}
	}
	return w.last() != nil && (w.last().foreign || p.blind) && l.events.warned[w.uid].After(since)
}

// closePeriods ends the periods in which the program may not have looked at a workload yet.
func (l *ledger) closePeriods(w *workload, now time.Time) {
	if len(w.open) == 0 || !w.eligible {
		return
	}
	since, known := l.calmSince(w)
	if !known {
		return
	}
	since = later(since, w.eligibleSince)
	kept := w.open[:0]
	for _, p := range w.open {
		since := later(since, p.opened)
		if now.Sub(since) < chance || p.waits && (now.Sub(since) < readoption || l.saysBlind(w, p)) || p.unrecorded && l.recordOf(w.object) == "" {
			kept = append(kept, p)
			continue
		}
		p.open, p.to = false, l.version
	}
	w.open = kept
}

// hasCompared reports whether a write of the program shows that it has compared the configuration: it changed the record or what is on
// the template. The end of a pause shows nothing.
func (l *rules) hasCompared(w *workload, c world.Commit) bool {
	template := func(o world.Object) string {
		return managedAnnotationsIn(world.Section(o, world.TemplatePath(w.id.plural)...), l.options.Prefix)
	}
	return l.recordOf(c.Old) != l.recordOf(c.New) || template(c.Old) != template(c.New)
}

// closeWaiting ends the periods that end with a write of the program: those that had begun when the write was asked for.
func (w *workload) closeWaiting(version int64, asked time.Time) {
	w.open = slices.DeleteFunc(w.open, func(p *period) bool {
		ends := p.waits && !p.opened.After(asked)
		if ends {
			p.open, p.to = false, version
		}
		return ends
	})
}

// openPeriod begins a period that ends when the program has surely looked.
func (w *workload) openPeriod(from int64, at time.Time) *period {
	p := &period{from: from, open: true, opened: at}
	w.open = append(w.open, p)
	return p
}

// adopt notes that the program may take what it finds from a version on for what the pods run with.
func (w *workload) adopt(version, from int64, at time.Time, of ref) *adoption {
	a := &adoption{version: version, period: w.openPeriod(from, at), of: of}
	w.adoptions = append(w.adoptions, a)
	return a
}

// changed returns what surely happened to an object between a stamp and the next: it kept its content, or it has another one; none
// of both where that is not known.
func (l *configLog) changed(w *workload, before, s *stamp, r ref) (kept, modified bool, content int) {
	known, read := l.findContents(w, before, s, r)
	now, alone := read.only()
	was, knows := known.only()
	if !knows || !alone {
		return false, false, 0
	}
	return was == now, was != now && was != absent && now != absent, now
}

// findContents returns the contents of an object that a stamp may have been made with, and the next one.
func (l *configLog) findContents(w *workload, before, s *stamp, r ref) (known, read believed) {
	read = believed{}
	read.addPeriod(l.contents.of(w.id.namespace, r), &period{from: l.readSince(w, s), to: s.version}, l.version)
	return l.beliefs(w, before, r), read
}

// missesRequired reports whether an object that the pods may require was absent during a stamp: then the program may have
// kept what it knew earlier. An absent one that no annotation names any more may still be recorded, and match an expression.
func (l *configLog) missesRequired(w *workload, s *stamp) bool {
	for r, need := range w.needs {
		if need == optional {
			continue
		}
		set := believed{}
		set.addPeriod(l.contents.of(w.id.namespace, r), &period{from: s.arrived, to: s.version}, l.version)
		if set[absent] {
			return true
		}
	}
	return false
}
