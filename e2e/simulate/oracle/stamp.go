package oracle

import (
	"bytes"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// stamp is one change of a workload's pod template: of what users see or of the program's marks.
type stamp struct {
	version int64
	at      time.Time
	// arrived and arrivedAt are those of the request.
	arrived   int64
	arrivedAt time.Time
	// visible is a number for the template as users see it, marks the program's annotations on it.
	visible int
	marks   string
	// hash are those of the marks that decide about a restart.
	hash string
	refs []ref
	call *world.Call
	// program means that the program's request made it, direct that the webhook had no part in that.
	program, direct bool
	// seen means that the webhook surely saw a user's request.
	seen bool
	// eligible reports whether the workload was to be looked after.
	eligible bool
	// guarded reports whether the template was to be left as it is: also of a workload that is not looked after, in scope.
	guarded bool
	// handmade means that a user changed an annotation with the prefix that the program never wrote on a template, or set one
	// of the program's where the program does not look after the workload.
	handmade bool
	// foreign means that marks of unknown meaning came in while the webhook may not have seen it.
	foreign bool
	// periods are when the program may have read the contents that it takes for those of the pods.
	periods []*period
	// carried has further ones for custom resources that were held, and for all objects while a required one was missing.
	carried map[ref][]*period
}

// same reports whether two stamps are of one template, marks included.
func (s *stamp) same(other *stamp) bool { return s.visible == other.visible && s.marks == other.marks }

const (
	// readBefore is how long before a direct write the contents may have been read that it is made from.
	readBefore = 3 * time.Second
	// readLongBefore is the same where the program was disturbed, or where in doubt nothing must be judged.
	readLongBefore = 15 * time.Second
)

// isDirect reports whether a request of the program writes the template itself.
func isDirect(call *world.Call) bool { return bytes.Contains(call.Body, []byte("template")) }

// seen reports whether the webhook surely saw a request and could read what it needed.
func (o *Oracle) seen(w *workload, c world.Commit) bool {
	if !o.options.Webhook || c.Call == nil || o.slow.during(w.id.namespace, c.Call.Arrived, c.At) {
		return false
	}
	if !w.rescoped.IsZero() && c.Call.Arrived.Sub(w.rescoped) < notice {
		return false // a replica may go by the scope of before
	}
	if o.healthy(w, c.Call.Arrived) || o.answering(w, c.Call.Arrived) {
		return true
	}
	// The first replicas may be ready earlier than is assumed: then their marks show it.
	since, known := o.overSince(w)
	return known && since.Before(c.Call.Arrived) && c.Sent != nil && o.marksOfAll(c.Sent) != o.marksOfAll(c.New)
}

// newStamp makes the stamp of a commit that changed the template. The workload is as it is after the commit.
func (o *Oracle) newStamp(w *workload, c world.Commit, visible int, marks string) *stamp {
	s := &stamp{
		version: c.Version, at: c.At, arrived: c.Version - 1, arrivedAt: c.At,
		visible: visible, marks: marks, refs: w.refs, call: c.Call, eligible: w.eligible,
		guarded: w.inScope && !w.unclear,
	}
	if c.Call != nil {
		s.arrived, s.arrivedAt = c.Call.ArrivedVersion, c.Call.Arrived
		s.program = o.options.Program(c.Call.Client)
	}
	switch {
	case s.program:
		o.readByProgram(w, s)
	case w.attended() && o.seen(w, c):
		o.readByWebhook(w, s)
	default:
		s.periods = []*period{w.openPeriod(s.arrived, s.at)}
		inherit(w, s)
	}
	o.carry(w, s)
	o.noteOldKey(w, s)
	s.handmade = !s.program && (o.isHandmade(w, c) || !w.eligible && o.setsMarks(w, c))
	return s
}

// readByWebhook notes when the webhook may have read the contents of a user's stamp. While a required object is missing, the program may
// keep what it knew of before, by the stamp before or by what it has adopted since.
func (o *Oracle) readByWebhook(w *workload, s *stamp) {
	s.seen = true
	s.periods = []*period{{from: s.arrived, to: s.version}}
	previous := w.last()
	if previous == nil || !o.missesRequired(w, s) {
		return
	}
	s.add(previous.periods)
	s.carried = map[ref][]*period{}
	for _, r := range w.refs {
		s.carried[r] = w.knowledge(previous, r)
	}
}

// readByProgram notes when the program may have read the contents of its own stamp.
func (o *Oracle) readByProgram(w *workload, s *stamp) {
	s.direct = !o.options.Webhook || isDirect(s.call)
	from := s.arrived
	if s.direct {
		back := readBefore
		if !o.healthy(w, s.arrivedAt) {
			back = readLongBefore
		}
		from = min(from, o.versionAt(s.arrivedAt.Add(-back)))
	}
	s.periods = []*period{{from: from, to: s.version}}
}

// learn takes note of the annotations that the program writes on templates.
func (o *Oracle) learn(c world.Commit) {
	if c.Call == nil {
		return
	}
	before := c.Sent
	if o.options.Program(c.Call.Client) {
		before = c.Old
	}
	if before == nil {
		return
	}
	path := templatePath(c.Key.Resource.Plural)
	had := annotationsOf(section(before, path...))
	for name := range annotationsOf(section(c.New, path...)) {
		if _, sent := had[name]; !sent && isMark(name, o.options.Prefix) {
			o.learned[name] = true
		}
	}
}

// setsMarks reports whether a user gave marks of the template another value, and it was stored.
func (o *Oracle) setsMarks(w *workload, c world.Commit) bool {
	path := templatePath(w.id.plural)
	before, sent := annotationsOf(section(c.Old, path...)), annotationsOf(section(c.Sent, path...))
	for name, value := range annotationsOf(section(c.New, path...)) {
		if isMark(name, o.options.Prefix) && equal(sent[name], value) && !equal(before[name], value) {
			return true
		}
	}
	return false
}

// isHandmade reports whether annotations with the prefix changed that the program does not write.
func (o *Oracle) isHandmade(w *workload, c world.Commit) bool {
	path := templatePath(w.id.plural)
	before, after := annotationsOf(section(c.Old, path...)), annotationsOf(section(c.New, path...))
	return !sameWithout(before, after, func(name string) bool { return o.learned[name] || !isMark(name, o.options.Prefix) })
}

// noteOldKey takes note of marks that come back from before a key was lost, or of a record without any: they cannot be compared.
func (o *Oracle) noteOldKey(w *workload, s *stamp) {
	if w.unread == s.version {
		p := w.openPeriod(s.arrived, s.at)
		p.waits, p.blind = true, true
		s.periods = append(s.periods, p)
	}
	for _, a := range w.adoptions {
		if !a.lost || s.marks == "" {
			continue
		}
		for _, earlier := range w.stamps {
			if earlier.version < a.version && earlier.marks == s.marks && !s.foreign {
				s.foreign = true
				p := w.openPeriod(s.arrived, s.at)
				p.waits = true
				s.periods = append(s.periods, p)
			}
		}
	}
}

// inherit adds what was believed of the stamp before, and of earlier stamps that had the same marks, to one that the webhook
// may not have seen: marks may mean what they meant then.
func inherit(w *workload, s *stamp) {
	previous := w.last()
	if previous == nil {
		return
	}
	s.add(previous.periods)
	s.foreign = s.marks != "" && (s.marks != previous.marks || previous.foreign)
	if s.marks == "" {
		return
	}
	for _, earlier := range w.stamps {
		if earlier.marks == s.marks {
			s.add(earlier.periods)
		}
	}
}

// add adds periods that are not there yet.
func (s *stamp) add(periods []*period) {
	for _, p := range periods {
		if !slices.Contains(s.periods, p) {
			s.periods = append(s.periods, p)
		}
	}
}

// missesRequired reports whether an object that the pods may require was absent during a stamp: then the program may have
// kept what it knew of before. An absent one that no annotation names any more may still be recorded, and match an expression.
func (o *Oracle) missesRequired(w *workload, s *stamp) bool {
	for r, need := range w.needs {
		if need == optional {
			continue
		}
		set := believed{}
		set.addPeriod(o.contents.of(w.id.namespace, r), &period{from: s.arrived, to: s.version}, o.version)
		if set[absent] {
			return true
		}
	}
	return false
}
