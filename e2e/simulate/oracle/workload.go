package oracle

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// workload is what is known of one workload, from its creation to its deletion.
type workload struct {
	id  id
	uid string
	// object is what is stored.
	object world.Object
	gone   bool

	// refs are the objects that it tracks; triggers says by which changes, and listed are those of its lists.
	refs     []ref
	triggers map[ref]triggers
	// appeared are the creations of objects that no name in the annotations tracks, as long as they may restart it.
	appeared []appearance
	listed   []ref
	// dropped says when an object was tracked last, and since when it was.
	dropped map[ref]lapse
	// needs are what its pod spec references. dynamic means that it uses the second dialect.
	needs   map[ref]need
	dynamic bool
	// excluded means that a label takes it out; inScope is what the flags say.
	excluded, inScope bool
	// unclear means that something is on it that the oracle does not know enough of, or that it is not known whether it is in
	// scope; beyond is the first of these alone.
	unclear, beyond bool
	// eligible means that the program must look after it: it tracks objects, or may later, is in scope and not excluded.
	eligible      bool
	eligibleSince time.Time
	// ineligibleAt is the last version at which it was not eligible.
	ineligibleAt int64
	// changed is when lists, labels or scope changed last; rescoped is when the scope did, after its creation.
	changed, rescoped time.Time

	template  world.Object
	templates []world.Object
	// traces are what a strategy has written on its templates.
	traces map[string]bool
	stamps []*stamp
	// tracked has the version since which an object is tracked.
	tracked map[ref]int64
	// relisted is the last version at which the set of its lists changed, rewritten the last one at which their text did.
	relisted, rewritten int64
	adoptions           []*adoption
	// open has the periods that have not ended.
	open []*period
	// keyChanged is the last version at which the digest keys changed.
	keyChanged int64
	// lastHandEdit is the last version at which a user changed managed annotations and the webhook may not have seen it.
	lastHandEdit int64
	// recorded has the first version of each value of the program's record.
	recorded map[string]int64
	// retracked is the last version at which it began or ceased to track an object, sure the one at which the program surely had recorded
	// all that the pods ran with.
	retracked, sure int64
	// cramped is the last version at which its annotations had no space for all that the program keeps.
	cramped int64
	// unasked is the last version at which the workload may have asked for no reloads.
	unasked int64
	// unread is the last version at which a record came back that was made before a digest key was lost.
	unread int64
	// respecified is when its spec or its annotations of the second dialect changed last.
	respecified time.Time
	// cutShort is the last version at which a restart without a new template ended, and the webhook may not have seen it.
	cutShort int64
	// acts are the times of the users' last writes.
	acts [3]time.Time
	// waited is when a Job last kept runs from being made.
	waited time.Time
	selection
	due      due
	pause    pause
	story    story
	requests requests
}

// last returns the present stamp.
func (w *workload) last() *stamp {
	if len(w.stamps) == 0 {
		return nil
	}
	return w.stamps[len(w.stamps)-1]
}

// listsObject reports whether a config object, e.g. "configmaps/shop/app", is listed.
func (w *workload) listsObject(key string) bool {
	return slices.ContainsFunc(w.refs, func(r ref) bool {
		return id{r.plural, w.id.namespace, r.name}.String() == key
	})
}

func (w *workload) lists(key id) bool {
	_, found := slices.BinarySearchFunc(w.refs, ref{key.plural, key.name}, compareRefs)
	return found && key.namespace == w.id.namespace
}

// commitWorkload records a stored change of a workload.
func (l *ledger) commitWorkload(c world.Commit) (r restamp, is bool) {
	if c.Restored > 0 {
		l.rewind(c)
	}
	w := l.storedWorkload(c)
	if w == nil {
		return restamp{}, false
	}
	if w.object != nil && c.Call != nil && !l.isProgram(c.Call) {
		w.acts = [3]time.Time{w.acts[1], w.acts[2], c.At}
		l.recordManagedAnnotations(w, c)
	}
	if l.isProgram(c.Call) && l.hasCompared(w, c) {
		w.closeWaiting(c.Version, c.Call.Arrived)
	}
	l.recordStripped(w, c)
	l.learn(c)
	l.recordEndOfRestart(w, c)
	l.recordProgramRecord(w, c)
	created := w.object == nil
	if !sameRequest(w.object, c.New) {
		w.respecified = c.At
	}
	w.object = c.New
	w.readNeeds()
	l.readTraits(w, c, created)
	r, is = l.readTemplate(w, c)
	l.readDue(w, c.At)
	return r, is
}

// storedWorkload returns the workload that exists after a change; nil if none does. One with another uid is another workload.
func (l *ledger) storedWorkload(c world.Commit) *workload {
	key := idOf(c.Key)
	w := l.workloads[key]
	if w != nil && c.New != nil && w.uid == uidOf(c.New) {
		return w
	}
	if w != nil {
		w.gone, w.eligible = true, false
		delete(l.workloads, key)
	}
	if c.New == nil {
		return nil
	}
	w = &workload{
		id: key, uid: uidOf(c.New), tracked: map[ref]int64{}, dropped: map[ref]lapse{}, recorded: map[string]int64{}, changed: c.At,
	}
	l.workloads[key] = w
	l.all = append(l.all, w)
	l.byUID[w.uid] = w
	l.count("workloads")
	return w
}

// recordManagedAnnotations records managed annotations that a user changed where the webhook may not have seen it.
func (l *ledger) recordManagedAnnotations(w *workload, c world.Commit) {
	if l.allManagedAnnotations(c.Old) == l.allManagedAnnotations(c.New) || w.eligible && l.seen(w, c) || l.keptHidden(w, c) {
		return
	}
	w.lastHandEdit = c.Version
	l.excuseUnreported(w)
	a := w.adopt(c.Version, c.Call.ArrivedVersion, c.At, ref{})
	if l.returnsLostRecord(w, c) {
		a.period.waits, a.period.blind = true, true
		w.unread = c.Version
	}
}

// recordProgramRecord records what the program has recorded on a workload. Where config objects decide what is tracked and the
// annotations have no space for the record, the hash alone proves nothing: until there is one, what is found is taken for what the
// pods run with.
func (l *ledger) recordProgramRecord(w *workload, c world.Commit) {
	value := l.recordOf(c.New)
	if _, known := w.recorded[value]; !known {
		w.recorded[value] = c.Version
	}
	if l.bytesLeftOn(c.New) < recordNeeds {
		w.cramped = c.Version
	}
	if w.dynamic && l.recordOf(c.Old) != "" && l.lacksSpaceForRecord(c.New) {
		w.adopt(c.Version, c.Version, c.At, ref{}).period.unrecorded = true
	}
}

// returnsLostRecord reports whether a write brings back a record that was made before a digest key was lost.
func (l *ledger) returnsLostRecord(w *workload, c world.Commit) bool {
	value := l.recordOf(c.New)
	since, known := w.recorded[value]
	return known && value != "" && value != l.recordOf(c.Old) &&
		slices.ContainsFunc(w.adoptions, func(a *adoption) bool { return a.lost && a.version > since })
}

// readTraits reads who looks after the workload and what it lists.
func (l *ledger) readTraits(w *workload, c world.Commit, created bool) {
	l.track(w, c.New, c, created)
	labels := world.Labels(c.New)
	w.excluded = world.Text(labels, l.options.Prefix+ignoredLabel) == "true" || world.Text(labels, l.options.Prefix+disabledLabel) == "true"
	w.beyond = l.tracksInPart(w) || len(w.refs) > mostRefs || foreignKeys(world.Annotations(c.New)) ||
		isOfNewerVersion(world.Text(world.Annotations(c.New), l.options.Prefix+recordAnnotation))
	l.readScope(w, c.At, c.Version)
}

// isOfNewerVersion reports whether a record is one of a later version of the program: that is neither evaluated nor replaced, and an
// Event says so.
func isOfNewerVersion(record string) bool {
	version, rest, _ := strings.Cut(record, ":")
	number, err := strconv.Atoi(strings.TrimPrefix(version, "v"))
	return err == nil && number > 1 && rest != "" && version[0] == 'v'
}

// readScope decides whether the program must look after a workload.
func (l *ledger) readScope(w *workload, at time.Time, version int64) {
	was := *w
	w.inScope = l.scopeOf(w.object, w)
	l.readSides(w)
	w.unclear = w.beyond || l.scope.unclear(w.id.plural) || l.labelsUnclear(w)
	ending := l.inEndingNamespace(w) || deleting(w.object) || w.gone
	w.eligible = (len(w.refs) > 0 || len(w.listed) > 0 || w.dynamic) && w.inScope && !w.excluded && !w.unclear && !ending
	if !w.eligible {
		w.ineligibleAt = version
		l.excuseUnreported(w)
	}
	w.recordScope(was, at)
}

// attended reports whether the webhook has to look at it: what a label excludes keeps its managed annotations.
func (w *workload) attended() bool { return w.eligible || w.excluded && w.inScope }

// recordScope records the time at which scope or traits changed.
func (w *workload) recordScope(was workload, at time.Time) {
	if len(w.stamps) > 0 && (was.inScope != w.inScope || was.unclear != w.unclear) {
		w.changed, w.rescoped = at, at
	}
	if was.eligible != w.eligible || was.sides != w.sides {
		w.changed = at
		if w.eligible {
			w.eligibleSince = at
		}
	}
}

// readNeeds reads what the pod spec references.
func (w *workload) readNeeds() {
	spec := world.Section(w.object, append(world.PodPath(w.id.plural), "spec")...)
	if w.needs == nil || !equal(spec, world.Section(w.template, "spec")) {
		w.needs = needs(spec)
	}
}

// track records what a workload tracks from now on. What is tracked newly is taken as it is found.
func (l *ledger) track(w *workload, object world.Object, c world.Commit, created bool) {
	dynamic := w.dynamic
	refs, by := l.asks(w, object)
	if !dynamic && w.dynamic && l.lacksSpaceForRecord(object) {
		w.adopt(c.Version, c.Version, c.At, ref{}).period.unrecorded = true
	}
	lists := listed(world.Annotations(object), l.options.Prefix)
	if !l.asksForReloads(w, object) {
		w.unasked = c.Version
	}
	if !slices.Equal(lists, w.listed) && !created {
		w.relisted = c.Version
	}
	if l.listText(c.Old) != l.listText(c.New) && !created {
		w.rewritten = c.Version
	}
	w.listed, w.triggers = lists, by
	if !slices.Equal(refs, w.refs) {
		l.relist(w, refs, c, created)
	}
}

// relist records other objects.
func (l *ledger) relist(w *workload, refs []ref, c world.Commit, created bool) {
	w.changed = c.At
	before := w.refs
	w.refs = refs
	for _, r := range before {
		if _, still := slices.BinarySearchFunc(refs, r, compareRefs); !still {
			w.dropped[r] = lapse{versionTime{c.At, c.Version}, w.tracked[r], l.recordedAt(w, r, c)}
			delete(w.tracked, r)
		}
	}
	w.retracked = c.Version
	for _, r := range refs {
		if _, already := w.tracked[r]; already {
			continue
		}
		w.tracked[r] = w.trackedSince(r, c.Version)
		if !created && len(refs) <= mostRefs {
			l.recordAppearance(w, r, c)
			if l.remembers(w, r, c) {
				l.count("objects remembered")
				continue
			}
			l.adoptListed(w, r, c)
		}
	}
	if len(refs) > mostRefs {
		w.adopt(c.Version, c.Version, c.At, ref{})
	}
}

// lapse is when an object that a workload tracked since a version was not tracked any more.
type lapse struct {
	versionTime

	since int64
	// recorded is a version at which the program surely had recorded what the pods ran with of it; 0 if there is none.
	recorded int64
}

// trackedSince returns since when an object counts as tracked that is tracked anew from a version on: while no other template was made,
// the program may still have what it has recorded of it.
func (w *workload) trackedSince(r ref, version int64) int64 {
	if was, before := w.dropped[r]; before && w.last() != nil && w.last().version < was.version {
		return was.since
	}
	return version
}

// adoptListed notes that what is newly listed is taken as it is found.
func (l *ledger) adoptListed(w *workload, r ref, c world.Commit) {
	from := c.Version
	if c.Call != nil {
		from = c.Call.ArrivedVersion
	}
	a := w.adopt(c.Version, from, c.At, r)
	if !slices.Contains(w.listed, r) {
		a.precise = true // the webhook stamps at once only where the lists change
		return
	}
	a.listed = true
	if l.seen(w, c) && w.inScope && !w.excluded {
		a.period.open, a.period.to = false, c.Version
		w.open = slices.DeleteFunc(w.open, func(p *period) bool { return p == a.period })
	}
}

// mostRefs is how many objects a workload may list. Of more, the oracle does not know which of them are left out.
const mostRefs = 1000

// readTemplate makes a stamp if the template has changed, and returns whether there was one before.
func (l *ledger) readTemplate(w *workload, c world.Commit) (r restamp, is bool) {
	template := world.Section(c.New, world.TemplatePath(w.id.plural)...)
	if c.Restored > 0 && len(w.stamps) > 0 {
		w.template = template // that of the last stamp that was not lost
		return restamp{}, false
	}
	restarted := !l.restarted(c).IsZero()
	if world.Same(template, w.template) && !restarted {
		return restamp{}, false
	}
	before, old := w.last(), w.template
	visible, managed := w.number(template, l.options.Prefix), managedAnnotationsIn(template, l.options.Prefix)
	w.template = template
	if before != nil && before.visible == visible && before.managed == managed && !restarted {
		return restamp{}, false
	}
	s := l.newStamp(w, c, visible, managed)
	w.recordTraces(template)
	s.hash = l.managedAnnotationsOfRestart(template)
	w.stamps = append(w.stamps, s)
	l.adoptLater(w, s)
	l.adoptFromOther(w, s)
	l.count("stamps")
	if w.dynamic && before != nil && !s.program {
		w.adoptDynamic(s)
	}
	return restamp{workload: w, commit: c, before: before, stamp: s, old: old, template: template}, before != nil
}

// adoptLater notes that a stamp may be one under a key that is lost: while a fault lasts, a replica that did not hear of the loss goes
// on with the key that it has, and the next one cannot compare its stamps.
func (l *ledger) adoptLater(w *workload, s *stamp) {
	since, known := l.calmSince(w)
	lost := slices.ContainsFunc(w.adoptions, func(a *adoption) bool { return a.lost && (!known || since.After(a.period.opened)) })
	if lost && (!known || since.After(s.arrivedAt)) {
		a := w.adopt(s.version+1, s.version, s.at, ref{})
		a.lost, a.period.waits = true, true
	}
}

// adoptDynamic notes that a user's stamp may have lost the record of what the pods run with: where config objects decide what is
// tracked, the hash alone proves nothing, and what is found then is taken for it.
func (w *workload) adoptDynamic(s *stamp) {
	a := w.adopt(s.version, s.arrived, s.at, ref{})
	if !s.seen {
		return
	}
	a.period.open, a.period.to = false, s.version
	w.open = slices.DeleteFunc(w.open, func(p *period) bool { return p == a.period })
}
