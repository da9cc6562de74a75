package oracle

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// stamp is one change of a workload's pod template: of what users see or of the program's managed annotations.
type stamp struct {
	version int64
	at      time.Time
	// arrived and arrivedAt are those of the request.
	arrived   int64
	arrivedAt time.Time
	// visible is a number for the template as users see it, managed annotations the program's annotations on it.
	visible int
	managed string
	// hash are those of the managed annotations that decide about a restart.
	hash string
	refs []ref
	call *world.Call
	// program means that the program's request made it, direct that the webhook had no part in that.
	program, direct bool
	// restartAt is the time of a restart without a new template, zero for other stamps; restarts is how many of these there were.
	restartAt time.Time
	restarts  int
	// endsRestart means that a user ends a restart before all pods are replaced: then the template replaces them.
	endsRestart bool
	// seen means that the webhook surely saw a user's request.
	seen bool
	// eligible reports whether the workload was to be looked after.
	eligible bool
	// guarded reports whether the template was to be left as it is: also of a workload that is not looked after, in scope.
	guarded bool
	// handmade means that a user changed an annotation with the prefix that the program never wrote on a template, or set one
	// of the program's where the program does not look after the workload.
	handmade bool
	// reloader means that another writer set what Stakater's Reloader sets when it reloads a workload.
	reloader bool
	// foreign means that managed annotations of unknown meaning came in while the webhook may not have seen it.
	foreign bool
	// periods are when the program may have read the contents that it takes for those of the pods.
	periods []*period
	// relisted means that the write that made it edited the lists, and that other managed annotations came with it.
	relisted bool
	// unrecorded means that the workload had no record when it was made.
	unrecorded bool
	// brought is the first period of a workload that was created with managed annotations, or to which a record came back, while the webhook
	// may not have seen it: until the program has looked, it may compare these, which may be those of another workload or template.
	brought *period
	// carried has further ones for custom resources that were held, and for all objects while a required one was missing.
	carried map[ref][]*period
}

// hashed reports whether the template has a config-hash, which a content that returns brings back. A strategy's variable may be left without it.
func (s *stamp) hashed() bool { return !strings.HasPrefix(s.hash, " ") }

// same reports whether two stamps are of one template, managed annotations included.
func (s *stamp) same(other *stamp) bool {
	return s.visible == other.visible && s.managed == other.managed
}

// mayBringOthers reports whether the managed annotations of a stamp may be those of another workload or template, and the program may not
// have looked.
func (s *stamp) mayBringOthers() bool { return s.brought != nil && s.brought.open }

const (
	// readRightBefore is how long before a direct write the contents may have been read that it is made from, in requests that are not slow.
	readRightBefore = 3 * slowAfter
	// readBefore is the same where some may have been slow.
	readBefore = 3 * time.Second
	// readLongBefore is the same where the program was disturbed, or where in doubt nothing must be judged.
	readLongBefore = 15 * time.Second
)

// isDirect reports whether a request of the program writes the template itself.
func isDirect(call *world.Call) bool { return bytes.Contains(call.Body, []byte("template")) }

// seen reports whether the webhook surely saw a request and could read what it needed.
func (l *faultLog) seen(w *workload, c world.Commit) bool {
	if l.options.Direct || c.Call == nil || l.slow.during(w.id.namespace, c.Call.Arrived, c.At) {
		return false
	}
	if !w.rescoped.IsZero() && c.Call.Arrived.Sub(w.rescoped) < notice {
		return false // a replica may go by the earlier scope
	}
	if l.healthy(w, c.Call.Arrived) || l.answering(w, c.Call.Arrived) {
		return true
	}
	// The first replicas may be ready earlier than is assumed: then their managed annotations show it.
	since, known := l.overSince(w)
	return known && since.Before(c.Call.Arrived) && c.Sent != nil && l.allManagedAnnotations(c.Sent) != l.allManagedAnnotations(c.New)
}

// newStamp makes the stamp of a commit that changed the template. The workload is as it is after the commit.
func (l *ledger) newStamp(w *workload, c world.Commit, visible int, managed string) *stamp {
	s := &stamp{
		version: c.Version, at: c.At, arrived: c.Version - 1, arrivedAt: c.At,
		visible: visible, managed: managed, refs: w.refs, call: c.Call, eligible: w.eligible,
		guarded: w.inScope && !w.unclear, unrecorded: l.recordOf(c.Old) == "", restartAt: l.restarted(c), endsRestart: l.endsRestart(w, c),
	}
	previous := w.last()
	s.restarts = restartsUntil(previous, s)
	s.relisted = w.relisted == s.version && previous != nil && previous.managed != managed
	if c.Call != nil {
		s.arrived, s.arrivedAt = c.Call.ArrivedVersion, c.Call.Arrived
		s.program = l.options.Program(c.Call.Client)
		s.reloader = !s.program && w.reloadedByReloader(c)
	}
	switch {
	case s.program:
		l.readByProgram(w, s, c)
	case w.attended() && l.seen(w, c):
		l.readByWebhook(w, s)
	default:
		l.readByNone(w, s, c)
	}
	l.carry(w, s)
	w.adoptOldKey(s)
	s.handmade = !s.program && (l.isHandmade(w, c) || !w.eligible && l.setsManagedAnnotations(w, c))
	return s
}

// readByNone notes that neither the webhook nor the loop may have seen a stamp: the workload keeps what it has, and what a user brings.
func (l *ledger) readByNone(w *workload, s *stamp, c world.Commit) {
	if l.staysKnown(w, s, c) {
		s.carryAll(w)
		return
	}
	s.periods = []*period{w.openPeriod(s.arrived, s.at)}
	inherit(w, s)
	created := w.last() == nil && l.allManagedAnnotations(c.Sent) != l.allManagedAnnotations(nil)
	if record := l.recordOf(c.New); created || record != "" && record != l.recordOf(c.Old) {
		s.brought = s.periods[0]
	}
}

// readByWebhook notes when the webhook may have read the contents of a user's stamp. While a required object is missing, the program may
// keep what it knew earlier, by the stamp before or by what it has adopted since.
func (l *ledger) readByWebhook(w *workload, s *stamp) {
	s.seen = true
	s.periods = []*period{{from: s.arrived, to: s.version}}
	if w.last() == nil || !l.missesRequired(w, s) {
		return
	}
	s.carryAll(w)
}

// carryAll adds what is known by the stamp before.
func (s *stamp) carryAll(w *workload) {
	previous := w.last()
	s.add(previous.periods)
	s.carried = map[ref][]*period{}
	for _, r := range w.refs {
		s.carried[r] = w.knowledge(previous, r)
	}
}

// staysKnown reports whether a user's write of the template leaves alone all that the program knows of the pods: it has a record, which
// belongs to the hash. Then nothing is adopted.
func (l *ledger) staysKnown(w *workload, s *stamp, c world.Commit) bool {
	previous := w.last()
	return previous != nil && !previous.foreign && !previous.mayBringOthers() && c.Call != nil && w.eligible && l.recordOf(c.Old) != "" &&
		l.allManagedAnnotations(c.Old) == l.allManagedAnnotations(c.New) && slices.Equal(previous.refs, s.refs) && !w.dynamic && !l.missesRequired(w, s) &&
		!slices.ContainsFunc(w.refs, func(r ref) bool { return isReferent(r.plural) })
}

// readByProgram notes when the program may have read the contents of its own stamp.
func (l *ledger) readByProgram(w *workload, s *stamp, c world.Commit) {
	s.direct = l.readsItself(w, s, c)
	from := s.arrived
	if s.direct {
		from = l.readSince(w, s)
	}
	s.periods = []*period{{from: from, to: s.version}}
}

// readSince returns the version since which the program may have read the contents that it made its stamp from. A custom resource takes many
// reads.
func (l *configLog) readSince(w *workload, s *stamp) int64 {
	back := readRightBefore
	switch {
	case !l.healthy(w, s.arrivedAt):
		back = readLongBefore
	case !s.direct:
		return s.arrived
	case l.slow.during(w.id.namespace, s.arrivedAt.Add(-readBefore), s.at) || slices.ContainsFunc(s.refs, func(r ref) bool { return isReferent(r.plural) }):
		back = readBefore
	}
	return min(s.arrived, l.versionAt(s.arrivedAt.Add(-back)))
}

// learn records the annotations that the program writes on templates.
func (l *ledger) learn(c world.Commit) {
	if c.Call == nil {
		return
	}
	before := c.Sent
	if l.options.Program(c.Call.Client) {
		before = c.Old
	}
	if before == nil {
		return
	}
	path := world.TemplatePath(c.Key.Resource.Plural)
	had := world.Annotations(world.Section(before, path...))
	for name := range world.Annotations(world.Section(c.New, path...)) {
		if _, sent := had[name]; !sent && isManagedAnnotation(name, l.options.Prefix) {
			l.learned[name] = true
		}
	}
}

// setsManagedAnnotations reports whether a user gave managed annotations of the template another value, and it was stored.
func (l *rules) setsManagedAnnotations(w *workload, c world.Commit) bool {
	path := world.TemplatePath(w.id.plural)
	before, sent := world.Annotations(world.Section(c.Old, path...)), world.Annotations(world.Section(c.Sent, path...))
	for name, value := range world.Annotations(world.Section(c.New, path...)) {
		if isManagedAnnotation(name, l.options.Prefix) && equal(sent[name], value) && !equal(before[name], value) {
			return true
		}
	}
	return false
}

// isHandmade reports whether annotations with the prefix changed that the program does not write.
func (l *ledger) isHandmade(w *workload, c world.Commit) bool {
	path := world.TemplatePath(w.id.plural)
	before, after := world.Annotations(world.Section(c.Old, path...)), world.Annotations(world.Section(c.New, path...))
	return !sameWithout(before, after, func(name string) bool { return l.learned[name] || !isManagedAnnotation(name, l.options.Prefix) })
}

// adoptOldKey records managed annotations that come back from before a key was lost, or of a record without any: they cannot be compared.
func (w *workload) adoptOldKey(s *stamp) {
	if w.unread == s.version {
		p := w.openPeriod(s.arrived, s.at)
		p.waits, p.blind = true, true
		s.periods = append(s.periods, p)
	}
	for _, a := range w.adoptions {
		if !a.lost || s.managed == "" || s.isRestart() {
			continue
		}
		for _, earlier := range w.stamps {
			if earlier.version < a.version && earlier.managed == s.managed && !s.foreign {
				s.foreign = true
				p := w.openPeriod(s.arrived, s.at)
				p.waits = true
				s.periods = append(s.periods, p)
			}
		}
	}
}

// inherit adds what was believed of the stamp before, and of earlier stamps that had the same managed annotations, to one that the webhook
// may not have seen: managed annotations may mean what they meant then.
func inherit(w *workload, s *stamp) {
	previous := w.last()
	if previous == nil {
		return
	}
	s.add(previous.periods)
	s.brought = previous.brought
	s.foreign = s.managed != "" && (s.managed != previous.managed || previous.foreign)
	if s.managed == "" {
		return
	}
	for _, earlier := range w.stamps {
		if earlier.managed == s.managed {
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
