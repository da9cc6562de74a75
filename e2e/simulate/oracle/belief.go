package oracle

import (
	"slices"
	"sort"
	"time"
)

// period is a range of versions, the ends included. The content that the program took for that of the pods was read within.
type period struct {
	from, to int64
	// open means that the program may not have had a chance yet to look: the period goes on.
	open bool
	// waits means that a write of the program shows that it has looked, or minutes in which it does not say that it cannot.
	waits bool
	// blind means that it began with a record of before a digest key was lost.
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
	// lost means that digests of before mean nothing any more; precise that it makes only one object uncertain, and no restart.
	lost, precise bool
}

func (a *adoption) covers(r ref) bool { return a.of.name == "" || a.of == r }

// knowledge returns when the program may have read the content of an object that it takes for that of the pods of a stamp.
func (w *workload) knowledge(s *stamp, r ref) []*period {
	var known []*period
	if w.tracked[r] <= s.version {
		known = slices.Concat(s.periods, s.carried[r])
	}
	for _, a := range w.adoptions {
		if a.version > s.version && a.covers(r) {
			known = append(known, a.period)
		}
	}
	return known
}

// beliefs returns what the program may take for the content of the pods of a stamp.
func (o *Oracle) beliefs(w *workload, s *stamp, r ref) believed {
	set := believed{}
	h := o.contents.of(w.id.namespace, r)
	for _, p := range w.knowledge(s, r) {
		set.addPeriod(h, p, o.version)
	}
	return set
}

// believes reports whether the program may take a content for that of the pods of a stamp.
func (o *Oracle) believes(w *workload, s *stamp, r ref, content int) bool {
	h := o.contents.of(w.id.namespace, r)
	return slices.ContainsFunc(w.knowledge(s, r), func(p *period) bool { return o.had(h, p, content) })
}

// had reports whether an object had a content at some time of a period.
func (o *Oracle) had(h *history, p *period, content int) bool {
	to := p.to
	if p.open {
		to = o.version
	}
	if h.at(p.from) == content {
		return true
	}
	for _, e := range h.within(p.from, to) {
		if e.content == content {
			return true
		}
	}
	return false
}

// uncertain reports whether the program may not have had a chance yet to look at what belongs to a stamp.
func (w *workload) uncertain(s *stamp) bool {
	for _, p := range s.periods {
		if p.open {
			return true
		}
	}
	for _, a := range w.adoptions {
		if a.version > s.version && a.period.open && !a.precise {
			return true
		}
	}
	return false
}

// chance is how long the program surely needs at most to look at a workload, once it works as usual.
const chance = 20 * time.Second

// readoption is how long the program may take to write a workload again after a digest key was lost.
const readoption = 2 * time.Minute

// saysBlind reports whether marks made with a lost key came back, and a Warning Event says so: two installations must not
// fight about a workload. The Event is not repeated where such marks come again before the program has written the workload.
func (o *Oracle) saysBlind(w *workload, p *period) bool {
	since := p.opened
	for _, earlier := range w.open {
		if earlier.open && earlier.waits && earlier.opened.Before(since) {
			since = earlier.opened
		}
	}
	return w.last() != nil && (w.last().foreign || p.blind) && o.events.warned[w.uid].After(since)
}

// closePeriods ends the periods in which the program may not have looked at a workload yet.
func (o *Oracle) closePeriods(w *workload, now time.Time) {
	if len(w.open) == 0 || !w.eligible {
		return
	}
	since, known := o.calmSince(w)
	if !known {
		return
	}
	since = later(since, w.eligibleSince)
	kept := w.open[:0]
	for _, p := range w.open {
		since := later(since, p.opened)
		if now.Sub(since) < chance || p.waits && (now.Sub(since) < readoption || o.saysBlind(w, p)) || p.unrecorded && o.recordOf(w.object) == "" {
			kept = append(kept, p)
			continue
		}
		p.open, p.to = false, o.version
	}
	w.open = kept
}

// closeWaiting ends the periods that end with a write of the program.
func (w *workload) closeWaiting(version int64) {
	w.open = slices.DeleteFunc(w.open, func(p *period) bool {
		if p.waits {
			p.open, p.to = false, version
		}
		return p.waits
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

// versionAt returns the last version that was stored at a time or before.
func (o *Oracle) versionAt(at time.Time) int64 {
	i := sort.Search(len(o.clock), func(i int) bool { return o.clock[i].at.After(at) })
	if i == 0 {
		return 0
	}
	return o.clock[i-1].version
}
