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

// probes has the requests of users that are under way.
type probes struct {
	running []*probe
	// disturbed is when something happened last that may make the program read.
	disturbed time.Time
}

func newProbes() probes { return probes{} }

// rest is how long nothing must have happened before a read can only come from the request that is judged.
const rest = 15 * time.Second

// probeRequest takes note of a user's request.
func (o *Oracle) probeRequest(call *world.Call) {
	if !call.Write() || call.Key.Resource.Plural == "leases" || call.Key.Resource.Plural == "events" {
		return
	}
	o.probes.running = slices.DeleteFunc(o.probes.running, func(p *probe) bool { return call.Arrived.Sub(p.call.Arrived) > recovery })
	for _, p := range o.probes.running {
		p.spoiled = true
	}
	w := o.workloads[idOf(call.Key)]
	p := &probe{call: call, workload: w, spoiled: len(o.probes.running) > 0}
	if w == nil || call.Subresource != "" || call.Verb == "create" || call.Verb == "delete" || !o.undisturbed(w, call.Arrived) {
		p.spoiled = true
	}
	o.probes.running = append(o.probes.running, p)
}

// undisturbed reports whether the program has nothing else to do about a workload.
func (o *Oracle) undisturbed(w *workload, now time.Time) bool {
	return w.eligible && len(w.open) == 0 && w.due.since.IsZero() && o.healthy(w, now.Add(-rest)) &&
		now.Sub(o.probes.disturbed) >= rest && now.Sub(w.eligibleSince) >= rest && !o.held(w) && !o.waitsForRuns(w) &&
		!slices.ContainsFunc(w.refs, func(r ref) bool { return o.referentHeld(w, r) })
}

// probeRead takes note of a read of the program.
func (o *Oracle) probeRead(call *world.Call) {
	if call.Verb != "get" || !isConfig(call.Key.Resource.Plural) && !isReferent(call.Key.Resource.Plural) {
		return
	}
	for _, p := range o.probes.running {
		if p.workload != nil && p.read == nil && p.workload.lists(idOf(call.Key)) {
			p.read = call
		}
	}
}

// requestCommitted takes note of what a request has changed.
func (o *Oracle) requestCommitted(c world.Commit) {
	w := o.workloads[idOf(c.Key)]
	if c.Call == nil {
		return // controllers write status and their own annotations
	}
	o.probes.disturbed = c.At
	if w != nil && !o.options.Program(c.Call.Client) {
		w.requests.allowed++
	}
	if w != nil && c.New != nil {
		o.noteStory(w, c)
	}
	for _, p := range o.probes.running {
		if p.call == c.Call && p.workload == w && w != nil {
			p.plain = c.Old != nil && c.Sent != nil && o.outsideTemplate(w, c.Old, c.Sent)
		}
	}
}

// ample is the size of users' annotations beside which the program surely keeps what it knows. Where it had to drop that, the
// next write makes it read everything again.
const ample = annotationLimit - 32<<10

// outsideTemplate reports whether a user changed neither the pod template nor marks nor lists nor what decides about scope,
// of a workload on which the program can keep what it knows.
func (o *Oracle) outsideTemplate(w *workload, before, sent world.Object) bool {
	path := templatePath(w.id.plural)
	return o.sizeOfOthers(annotationsOf(before)) < ample && equal(section(before, path...), section(sent, path...)) && o.marksOfAll(before) == o.marksOfAll(sent) &&
		equal(listsOf(before, o.options.Prefix), listsOf(sent, o.options.Prefix)) &&
		equal(ownLabels(before, o.options.Prefix), ownLabels(sent, o.options.Prefix)) &&
		o.scopeOf(before, w) == o.scopeOf(sent, w)
}

func listsOf(object world.Object, prefix string) []any {
	annotations := annotationsOf(object)
	lists := []any{annotations[prefix+configMapList], annotations[prefix+secretList]}
	for _, key := range otherKeysOfAll() {
		lists = append(lists, annotations[key])
	}
	return lists
}

func ownLabels(object world.Object, prefix string) []any {
	labels := labelsOf(object)
	return []any{labels[prefix+ignoredLabel], labels[prefix+disabledLabel]}
}

// judgeProbe is the law "cost" for reads: what a user changes outside of the template makes the program read nothing.
func (o *Oracle) judgeProbe(r world.Reply) {
	running := o.probes.running[:0]
	var found *probe
	for _, p := range o.probes.running {
		if p.call == r.Call {
			found = p
			continue
		}
		running = append(running, p)
	}
	o.probes.running = running
	if found == nil || found.spoiled || !found.plain || r.Failure != nil || r.Status >= 300 {
		return
	}
	o.count("updates outside of the template judged")
	if found.read != nil {
		o.violate(r.At, broken{"cost", found.workload.id.String(), "read"}, "a %s at %s that changed nothing of the template made %s read %s",
			r.Call.Verb, o.when(r.Call.Arrived), found.read.Client, idOf(found.read.Key))
	}
}

func (o *Oracle) notePatch(call *world.Call) {
	if w := o.workloads[idOf(call.Key)]; w != nil && call.Verb == "patch" && !call.DryRun {
		w.requests.patches++
	}
}

func (o *Oracle) notePatchReply(r world.Reply) {
	w := o.workloads[idOf(r.Call.Key)]
	if w == nil || r.Call.Verb != "patch" || r.Call.DryRun {
		return
	}
	unstamped := o.full(w) && len(r.Warnings) > 0
	if r.Status >= 300 || r.Failure != nil || r.Lost || unstamped {
		w.requests.failed++
	}
}

// judgePatches is the law "cost" for writes, in histories without faults.
func (o *Oracle) judgePatches(w *workload) {
	if !o.faults.never() || w.ineligibleAt > 0 {
		return
	}
	o.count("patches judged")
	n := w.requests
	allowed := w.story.restarts + n.failed + n.allowed + len(w.adoptions) + 1
	if n.patches > allowed {
		o.violate(o.clockNow(), broken{"cost", w.id.String(), "patches"},
			"the program sent %d patches: %d restarts, %d failures and %d changes by users explain only %d",
			n.patches, w.story.restarts, n.failed, n.allowed, allowed)
	}
}

func (o *Oracle) clockNow() time.Time {
	if len(o.clock) == 0 {
		return o.born
	}
	return o.clock[len(o.clock)-1].at
}
