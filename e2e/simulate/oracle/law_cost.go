package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// requests counts the program's requests about one workload.
type requests struct {
	patches, failed int
	// recent has when the last ones arrived.
	recent []time.Time
	// allowed is how many more there may be: first sight, and what else may make the program write or ask in vain.
	allowed int
}

// probe is a user's request that must not make the program read configuration.
type probe struct {
	call     *world.Call
	workload *workload
	// spoiled means that something else may have made the program read; plain that the request is such a one.
	spoiled, plain bool
	read           *world.Call
}

// costLaw is the law "cost" for what users change outside of the template, and for writes.
type costLaw struct {
	*ledger
	passive

	// probes has the requests of users that are under way.
	probes []*probe
}

func (l *costLaw) request(call *world.Call) {
	if !l.isProgram(call) {
		l.probeRequest(call)
		return
	}
	l.probeRead(call)
	l.countPatch(call)
}

func (l *costLaw) reply(r world.Reply) {
	if !l.isProgram(r.Call) {
		l.judgeProbe(r)
		return
	}
	l.countFailure(r)
}

// rest is how long nothing must have happened before a read can only come from the request that is judged.
const rest = 15 * time.Second

// probeRequest records a user's request.
func (l *costLaw) probeRequest(call *world.Call) {
	if !call.Write() || call.Key.Resource.Plural == "leases" || call.Key.Resource.Plural == "events" {
		return
	}
	l.probes = slices.DeleteFunc(l.probes, func(p *probe) bool { return call.Arrived.Sub(p.call.Arrived) > recovery })
	for _, p := range l.probes {
		p.spoiled = true
	}
	w := l.workloads[idOf(call.Key)]
	p := &probe{call: call, workload: w, spoiled: len(l.probes) > 0}
	if w == nil || call.Subresource != "" || call.Verb == "create" || call.Verb == "delete" || !l.undisturbed(w, call.Arrived) {
		p.spoiled = true
	}
	l.probes = append(l.probes, p)
}

// undisturbed reports whether the program has nothing else to do about a workload.
func (l *costLaw) undisturbed(w *workload, now time.Time) bool {
	return w.eligible && len(w.open) == 0 && w.due.since.IsZero() && l.healthy(w, now.Add(-rest)) &&
		now.Sub(l.disturbed) >= rest && now.Sub(w.eligibleSince) >= rest && !l.held(w) && !l.waitsForRuns(w) &&
		!slices.ContainsFunc(w.refs, func(r ref) bool { return l.referentHeld(w, r) })
}

// probeRead records a read of the program.
func (l *costLaw) probeRead(call *world.Call) {
	if call.Verb != "get" || !isConfig(call.Key.Resource.Plural) && !isReferent(call.Key.Resource.Plural) {
		return
	}
	for _, p := range l.probes {
		if p.workload != nil && p.read == nil && p.workload.lists(idOf(call.Key)) {
			p.read = call
		}
	}
}

// stored records what a request has changed.
func (l *costLaw) stored(c world.Commit) {
	w := l.workloads[idOf(c.Key)]
	if world.TemplatePath(c.Key.Resource.Plural) == nil || c.Call == nil {
		return // controllers write status and their own annotations
	}
	l.disturbed = c.At
	if w != nil && !l.isProgram(c.Call) {
		w.requests.allowed++
	}
	for _, p := range l.probes {
		if p.call == c.Call && p.workload == w && w != nil {
			p.plain = c.Old != nil && c.Sent != nil && l.outsideTemplate(w, c.Old, c.Sent)
		}
	}
}

// ample is the size of users' annotations beside which the program surely keeps what it knows. Where it had to drop that, the
// next write makes it read everything again.
const ample = annotationLimit - 32<<10

// outsideTemplate reports whether a user changed neither the pod template nor managed annotations nor lists nor what decides about scope,
// of a workload on which the program can keep what it knows.
func (l *costLaw) outsideTemplate(w *workload, before, sent world.Object) bool {
	path := world.TemplatePath(w.id.plural)
	return l.sizeOfOthers(world.Annotations(before)) < ample && equal(world.Section(before, path...), world.Section(sent, path...)) &&
		l.allManagedAnnotations(before) == l.allManagedAnnotations(sent) &&
		equal(listsOf(before, l.options.Prefix), listsOf(sent, l.options.Prefix)) &&
		equal(ownLabels(before, l.options.Prefix), ownLabels(sent, l.options.Prefix)) &&
		l.scopeOf(before, w) == l.scopeOf(sent, w)
}

func listsOf(object world.Object, prefix string) []any {
	annotations := world.Annotations(object)
	lists := []any{annotations[prefix+configMapList], annotations[prefix+secretList]}
	for _, key := range otherKeysOfAll() {
		lists = append(lists, annotations[key])
	}
	return lists
}

func ownLabels(object world.Object, prefix string) []any {
	labels := world.Labels(object)
	return []any{labels[prefix+ignoredLabel], labels[prefix+disabledLabel]}
}

// judgeProbe is the law "cost" for reads: what a user changes outside of the template makes the program read nothing.
func (l *costLaw) judgeProbe(r world.Reply) {
	running := l.probes[:0]
	var found *probe
	for _, p := range l.probes {
		if p.call == r.Call {
			found = p
			continue
		}
		running = append(running, p)
	}
	l.probes = running
	if found == nil || found.spoiled || !found.plain || r.Failure != nil || r.Status >= 300 {
		return
	}
	l.count("updates outside of the template judged")
	if found.read != nil {
		l.violate(r.At, broken{"cost", found.workload.id.String(), "read"}, "a %s at %s that changed nothing of the template made %s read %s",
			r.Call.Verb, l.when(r.Call.Arrived), found.read.Client, idOf(found.read.Key))
	}
}

// countPatch counts a write of a workload.
func (l *costLaw) countPatch(call *world.Call) {
	if w := l.workloads[idOf(call.Key)]; w != nil && call.Verb == "patch" && !call.DryRun {
		w.requests.patches++
	}
}

// countFailure counts a write of a workload that had no effect.
func (l *costLaw) countFailure(r world.Reply) {
	w := l.workloads[idOf(r.Call.Key)]
	if w == nil || r.Call.Verb != "patch" || r.Call.DryRun {
		return
	}
	unstamped := l.full(w) && len(r.Warnings) > 0
	if r.Status >= 300 || r.Failure != nil || r.Lost || unstamped {
		w.requests.failed++
	}
}

// settled is the law "cost" for writes, in histories without faults.
func (l *costLaw) settled(w *workload, _ time.Time) {
	if w.gone || !l.faults.never() || w.ineligibleAt > 0 {
		return
	}
	l.count("patches judged")
	n := w.requests
	allowed := w.story.restarts + n.failed + n.allowed + len(w.adoptions) + 1
	if n.patches > w.byBoth(allowed) {
		l.violate(l.clockNow(), broken{"cost", w.id.String(), "patches"},
			"the program sent %d patches: %d restarts, %d failures and %d changes by users explain only %d",
			n.patches, w.story.restarts, n.failed, n.allowed, w.byBoth(allowed))
	}
}
