package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Violation is a promise that was broken.
type Violation struct {
	// Law is the name of the promise.
	Law string
	// Subject is what it was broken on, e.g. "deployments/shop/cart".
	Subject string
	// Text says what happened.
	Text string
	// Signature is the same for what has probably the same cause: the law and the kind of act that led to it.
	Signature string
	At        time.Time
}

// moment is a stored version in time.
type moment struct {
	at      time.Time
	version int64
}

// namespaceState is what is known of a namespace.
type namespaceState struct {
	labels map[string]string
	ending bool
}

// Oracle judges one run. All calls must come one after the other, in the order of what happened.
type Oracle struct {
	options Options
	timings map[string]timing
	faults  timeline

	leader      string
	leaderSince time.Time

	// version is that of the last commit, clock has all of them.
	version  int64
	clock    []moment
	born     time.Time
	nextTick time.Time

	scope    scope
	contents contents
	graph    graph
	// keysChanged is when the digest keys changed last: what was read or published before does not count.
	keysChanged time.Time
	// traits are those of the config objects that exist.
	traits map[id]traits
	// revisions are the UIDs and resource versions of the config objects, empty for those that do not exist.
	revisions  map[id]string
	namespaces map[string]*namespaceState
	// workloads are those that exist, all every one that ever did, in the order of creation.
	workloads map[id]*workload
	all       []*workload
	byUID     map[string]*workload
	sets      map[string]*set
	// shrunk has the version at which a ReplicaSet was last made smaller, by uid.
	shrunk map[string]int64
	pods   map[id]*pod
	// clients has those that are no replicas; rewatched is when a replica last opened a watch of a resource.
	clients   map[string]bool
	rewatched map[string]time.Time

	events  events
	metrics metrics
	idle    idleLog
	slow    slowness
	probes  probes
	reads   reads
	// learned has the annotations that the program writes on templates.
	learned   map[string]bool
	values    values
	jobs      jobs
	secrets   secretFilter
	looping   bool
	blindness blindness

	violations []Violation
	reported   map[string]bool
	counters   map[string]int
}

// New returns an oracle for one run.
func New(options Options) *Oracle {
	o := &Oracle{
		options: options.complete(), timings: map[string]timing{}, faults: newTimeline(),
		contents: newContents(), graph: newGraph(), traits: map[id]traits{}, revisions: map[id]string{}, namespaces: map[string]*namespaceState{}, workloads: map[id]*workload{}, byUID: map[string]*workload{},
		sets: map[string]*set{}, shrunk: map[string]int64{}, pods: map[id]*pod{}, clients: map[string]bool{}, rewatched: map[string]time.Time{},
		events: newEvents(), metrics: newMetrics(), probes: newProbes(), reads: newReads(), secrets: newSecretFilter(), values: newValues(), jobs: newJobs(), blindness: newBlindness(),
		learned: map[string]bool{}, scope: newScope(options.complete()), reported: map[string]bool{}, counters: map[string]int{},
	}
	return o
}

// Commit takes note of a stored change.
func (o *Oracle) Commit(c world.Commit) {
	o.advance(c.At)
	plural := c.Key.Resource.Plural
	isWorkload := templatePath(plural) != nil
	if isWorkload {
		if w := o.workloads[idOf(c.Key)]; w != nil {
			o.judgePrompt(w, c.At)
			o.closePeriods(w, c.At)
		}
		o.judgeUnharmed(c)
		o.judgeScopeOf(c)
	}
	o.version = c.Version
	o.clock = append(o.clock, moment{c.At, c.Version})
	switch {
	case isWorkload:
		o.commitWorkload(c)
		o.requestCommitted(c)
	case isConfig(plural):
		o.commitConfig(c)
	case isReferent(plural):
		o.commitReferent(c)
	default:
		o.commitOther(c)
	}
}

// commitOther takes note of a stored change of what belongs to workloads or to the program.
func (o *Oracle) commitOther(c world.Commit) {
	switch c.Key.Resource.Plural {
	case "namespaces":
		o.commitNamespace(c)
	case jobsResource:
		o.commitJob(c)
	case "pods":
		o.commitPod(c)
	case "replicasets":
		o.commitReplicaSet(c)
	case "controllerrevisions":
		o.commitRevision(c)
	case "events":
		o.commitEvent(c)
	case "leases":
		o.commitLease(c)
	}
}

// Request takes note of a request at its arrival.
func (o *Oracle) Request(call *world.Call) {
	o.advance(call.Arrived)
	o.tallyRequest(call)
	if !o.options.Program(call.Client) {
		o.clients[call.Client] = true
		o.probeRequest(call)
		return
	}
	o.faults.heard(call.Client, call.Arrived)
	o.slow.begin(call)
	if call.Verb == "watch" || call.Verb == "list" {
		o.rewatched[call.Key.Resource.Plural] = call.Arrived
	}
	if !o.isKeySecret(call.Key) {
		o.idle.note(call)
	}
	o.probeRead(call)
	o.judgeRead(call)
	o.judgeSecret(call)
	o.judgeScopeRequest(call)
	o.noteBlindRequest(call)
	o.notePatch(call)
}

// Reply takes note of an answer.
func (o *Oracle) Reply(r world.Reply) {
	o.advance(r.At)
	if r.Call == nil {
		return
	}
	o.judgeTally(r)
	if o.options.Program(r.Call.Client) {
		o.noteRead(r)
		o.slow.end(r)
		o.noteCollision(r)
		o.noteBlindReply(r)
		o.notePatchReply(r)
		return
	}
	o.judgeRejection(r)
	o.judgeTooLong(r)
	o.judgeProbe(r)
}

// Quiet judges what must hold when nothing is pending and all faults have ended long ago.
func (o *Oracle) Quiet(now time.Time) {
	o.advance(now)
	o.tick(now)
	o.count("quiet")
	for _, w := range o.all {
		o.judgeStoryAtQuiet(w, now)
		o.judgeHeldAtQuiet(w, now)
		if !w.gone {
			o.judgePatches(w)
		}
	}
	o.judgeCurrent(now)
	o.judgePublished(now)
	o.judgeJobsAtQuiet(now)
	o.judgeMetrics(now)
}

// Owes reports whether the program still has something to do: a reload that is due, an Event of a reload, or the report that
// it is no longer blind. Then it makes sense to wait before [Oracle.Quiet].
func (o *Oracle) Owes(now time.Time) bool {
	o.advance(now)
	if o.blindness.shown && !o.recovered(now) || o.owesJobs() {
		return true
	}
	for _, w := range o.all {
		if o.owesHeldReport(w, now) || !w.gone && !w.due.since.IsZero() || w.eligible && w.paused() || o.reloadsReported(w) < w.story.restarts-o.unreportable(w) {
			return true
		}
	}
	return false
}

// advance lets time go on.
func (o *Oracle) advance(now time.Time) {
	if o.born.IsZero() {
		o.born = now
	}
	if !now.Before(o.nextTick) {
		o.tick(now)
		o.nextTick = now.Add(tickEvery)
	}
}

// tickEvery is how often it is looked at what time alone brings.
const tickEvery = time.Second

// tick judges what time alone brings. What happens at this moment is not known yet.
func (o *Oracle) tick(now time.Time) {
	for _, w := range o.all {
		if !w.gone {
			o.judgePrompt(w, now)
			o.judgeDenied(w, now)
			o.closePeriods(w, now)
			o.judgeDue(w, now)
			o.judgePause(w, now)
		}
	}
	o.judgeJobs(now)
}

func (o *Oracle) commitNamespace(c world.Commit) {
	name := c.Key.Name
	o.probes.disturbed = c.At
	if c.New == nil {
		delete(o.namespaces, name)
	} else {
		o.namespaces[name] = &namespaceState{labels: texts(labelsOf(c.New)), ending: deleting(c.New)}
	}
	for _, w := range o.all {
		if w.id.namespace == name && !w.gone {
			w.requests.allowed++
			o.readScope(w, c.At, c.Version)
			o.judgeDue(w, c.At)
		}
	}
}

// commitLease finds out who leads.
func (o *Oracle) commitLease(c world.Commit) {
	holder := text(section(c.New, "spec"), "holderIdentity")
	if c.Call == nil || !o.options.Program(c.Call.Client) || holder == text(section(c.Old, "spec"), "holderIdentity") {
		return
	}
	if holder == "" {
		o.leaderSince = c.At
		return
	}
	o.lead(c.Call.Client, c.At)
}

// Violations returns what was found, in the order in which it was found.
func (o *Oracle) Violations() []Violation { return slices.Clone(o.violations) }

// broken says which law was broken, on what, and how: the rest of the signature.
type broken struct{ law, subject, how string }

// violate reports a violation once for each law, subject and signature.
func (o *Oracle) violate(at time.Time, b broken, format string, args ...any) {
	signature := b.law
	if b.how != "" {
		signature += "/" + b.how
	}
	o.count("violations of " + b.law)
	if key := signature + " " + b.subject; !o.reported[key] {
		o.reported[key] = true
		o.violations = append(o.violations, Violation{
			Law: b.law, Subject: b.subject, Text: fmt.Sprintf(format, args...), Signature: signature, At: at,
		})
	}
}

func (o *Oracle) count(what string) { o.counters[what]++ }

// Describe returns how much was seen, judged and excused.
func (o *Oracle) Describe() map[string]int { return maps.Clone(o.counters) }

// when writes a moment for people.
func (o *Oracle) when(at time.Time) string {
	return "+" + at.Sub(o.born).Round(time.Millisecond).String()
}
