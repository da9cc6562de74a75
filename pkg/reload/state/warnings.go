package state

import (
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// warnings has the Warning Events of workloads: for each reason, what was last sent.
type warnings struct{ perWorkload[warned] }

type warned map[string]warning

// warning is the last Warning Event of a reason.
type warning struct {
	// sum is the digest of the text, which may be long; 0 where what it reported has passed.
	sum uint64
	at  time.Time
	// failure says that the first success takes it back.
	failure bool
	// due is when the Event may be written at the earliest. full is when as many as possible may follow again; checks is that of Check.
	due, full, checks time.Time
}

const (
	// WarnAgain is when the API server has forgotten an Event, as it does after an hour by default: what is still wrong by
	// then is reported again.
	WarnAgain = time.Hour
	// warnAtOnce is how many Warning Events of one reason a workload gets in a row, warnEvery how often from then on. Under
	// constant change the text of a failure is another one each time.
	warnAtOnce = 4
	warnEvery  = time.Minute
	// checkAtOnce is how many texts are checked in a row: where caches are behind, as for a new workload, no Event comes of some checks,
	// and those must not hold up one.
	checkAtOnce = 2 * warnAtOnce
)

func (w warning) news(text string, now time.Time) bool {
	return w.sum != DigestOf(text) || now.Sub(w.at) >= WarnAgain
}

// next returns when the next Event may be written. One that waits is replaced by it and leaves it its time.
func (w *warning) next(now time.Time) time.Time {
	if w.due.After(now) {
		return w.due
	}
	w.full = later(w.full, now)
	w.due = w.full.Add(-(warnAtOnce - 1) * warnEvery)
	w.full = w.full.Add(warnEvery)
	return w.due
}

// Check reports whether a text is to be checked, which takes reads, and to be given to Warn then: it is news, and under constant
// change no more texts of a reason are checked than Events of it are written. Any other text is not to be given to Warn. Where it comes
// too early, or is empty, what was reported before has passed; Again returns when it is not too early any more.
func (w *warnings) Check(key workload.Key, reason, text string, now time.Time) (due bool) {
	if text == "" {
		w.Warn(key, reason, text, now)
		return false
	}
	w.with(key, func(e *warned) {
		last := (*e)[reason]
		if !last.news(text, now) {
			return
		}
		if due = !last.checkable().After(now); due {
			last.checks = later(last.checks, now).Add(warnEvery)
		} else {
			last.sum = 0
		}
		if *e == nil {
			*e = warned{}
		}
		(*e)[reason] = last
	})
	return due
}

// Warn records a text, and reports whether it is news: another one than the last of its reason, or one whose last Event was written
// long ago. It returns how long the Event must wait. An empty text forgets, so that the same is
// reported again when it comes back. No success does: who writes it takes it back.
func (w *warnings) Warn(key workload.Key, reason, text string, now time.Time) (delay time.Duration, news bool) {
	if text == "" {
		w.find(key, func(e *warned) { e.passed(reason) })
		return 0, false
	}
	w.with(key, func(e *warned) {
		last := (*e)[reason]
		if news = last.news(text, now); !news {
			return
		}
		last.sum, last.at, last.failure = DigestOf(text), now, false
		delay = max(last.next(now).Sub(now), 0)
		if *e == nil {
			*e = warned{}
		}
		(*e)[reason] = last
	})
	return delay, news
}

// checkable returns when the next text may be checked. The Event must not have to wait then: under constant change another text would
// take its place before it is written.
func (w warning) checkable() time.Time {
	return later(w.checks.Add(-(checkAtOnce-1)*warnEvery), w.full.Add(-(warnAtOnce-1)*warnEvery))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Fail is Warn of a failure, which Recovered forgets.
func (w *warnings) Fail(key workload.Key, reason, text string, now time.Time) (delay time.Duration, news bool) {
	delay, news = w.Warn(key, reason, text, now)
	w.find(key, func(e *warned) {
		if last, ok := (*e)[reason]; ok {
			last.failure = true
			(*e)[reason] = last
		}
	})
	return delay, news
}

// Again returns after what time to look at a workload again because of its Warning Events: when the first of them may be repeated, or, for
// a reason with none reported, when its next text may be checked. 0: there is no need.
func (w *warnings) Again(key workload.Key, now time.Time) time.Duration {
	var first time.Duration
	w.find(key, func(e *warned) {
		for _, last := range *e {
			at := last.at.Add(WarnAgain)
			if last.sum == 0 {
				at = last.checkable()
			}
			if wait := at.Sub(now); wait > 0 && (first == 0 || wait < first) {
				first = wait
			}
		}
	})
	return first
}

// IsWarned reports whether the text of a digest is the last one of its reason, and has not passed.
func (w *warnings) IsWarned(key workload.Key, reason string, text uint64) bool {
	same := false
	w.find(key, func(e *warned) { same = (*e)[reason].sum == text })
	return same
}

// Recovered forgets the failures that were reported: the next one is news, also if it is the same again.
func (w *warnings) Recovered(key workload.Key) {
	w.find(key, func(e *warned) {
		for reason, last := range *e {
			if last.failure {
				e.passed(reason)
			}
		}
	})
}

// passed forgets the text of a reason, but not how many Events it had.
func (w warned) passed(reason string) {
	if last, ok := w[reason]; ok {
		last.sum = 0
		w[reason] = last
	}
}
