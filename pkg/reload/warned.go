package reload

import (
	"slices"
	"time"
)

// warned is the text of the last Warning Event of a reason.
type warned struct {
	// text is empty where what it reported has passed.
	text string
	at   time.Time
	// due is when the Event may be written at the earliest. full is when as many as possible may follow again.
	due, full time.Time
}

const (
	// warnAgain is when the API server has forgotten an Event, as it does after an hour by default: what is still wrong by
	// then is reported again.
	warnAgain = time.Hour
	// warnings is how many Warning Events of one reason a workload gets in a row, warnEvery how often from then on. Under
	// constant change the text of a failure is another one each time.
	warnings  = 4
	warnEvery = time.Minute
)

func (w warned) news(text string, now time.Time) bool {
	return w.text != text || now.Sub(w.at) >= warnAgain
}

// next returns when the next Event may be written. One that waits is replaced by it and leaves it its time.
func (w *warned) next(now time.Time) time.Time {
	if w.due.After(now) {
		return w.due
	}
	if w.full.Before(now) {
		w.full = now
	}
	w.due = w.full.Add(-(warnings - 1) * warnEvery)
	w.full = w.full.Add(warnEvery)
	return w.due
}

// News reports whether a Warning Event of this reason would be news: its text is another one than the last, or the last one
// was written long ago. An empty text never is.
func (m *memory) News(key Key, reason, text string, now time.Time) bool {
	news := text != ""
	m.recall(key, func(n *note) { news = news && n.warned[reason].news(text, now) })
	return news
}

// Warn is News, and remembers it. It returns how long the Event must wait. An empty text forgets, so that the same is
// reported again when it comes back.
func (m *memory) Warn(key Key, reason, text string, now time.Time) (delay time.Duration, news bool) {
	if text == "" {
		m.recall(key, func(n *note) { n.passed(reason) })
		return 0, false
	}
	m.with(key, func(n *note) {
		w := n.warned[reason]
		if news = w.news(text, now); !news {
			return
		}
		w.text, w.at = text, now
		delay = max(w.next(now).Sub(now), 0)
		if n.warned == nil {
			n.warned = map[string]warned{}
		}
		n.warned[reason] = w
	})
	return delay, news
}

// IsWarned reports whether a text is the last one of its reason, and has not passed.
func (m *memory) IsWarned(key Key, reason, text string) bool {
	same := false
	m.recall(key, func(n *note) { same = n.warned[reason].text == text })
	return same
}

// Recovered forgets what was reported, but for some reasons: the next failure is news, also if it is the same again.
func (m *memory) Recovered(key Key, except ...string) {
	m.recall(key, func(n *note) {
		for reason := range n.warned {
			if !slices.Contains(except, reason) {
				n.passed(reason)
			}
		}
	})
}

// passed forgets the text of a reason, but not how many Events it had.
func (n *note) passed(reason string) {
	if w, ok := n.warned[reason]; ok {
		w.text = ""
		n.warned[reason] = w
	}
}
