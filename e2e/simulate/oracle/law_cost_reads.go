package oracle

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// readsLaw is the law "cost" for what the program reads of config objects. The table of costs allows: the loop, one read of the content of
// each version of an object; the webhook, one read of metadata for each object and call, and one read of a content that its replica does
// not know. A standby that answers no call reads nothing. What is below a custom resource each replica reads for the chain as well,
// whenever something of the graph changes: such objects are not judged. For what it does besides a stamp, the loop reads metadata live,
// too.
type readsLaw struct {
	*ledger
	passive

	// known has what a process has read of an object.
	known map[readKey]versionTime
	// running are the writes of workloads that are under way, of users and of the program: the webhook reads for them.
	running []*tally
	// lastWrite is when a write of a workload in a namespace was last under way.
	lastWrite map[string]time.Time
}

// readKey is an object as one process knows it.
type readKey struct {
	client string
	object id
}

// tally counts the reads of metadata while a write of a workload is under way.
type tally struct {
	call *world.Call
	// alone means that no other write in the namespace was under way at the same time.
	alone bool
	// metadata has the reads of each object.
	metadata map[id]int
}

func newReadsLaw(l *ledger) *readsLaw {
	return &readsLaw{ledger: l, known: map[readKey]versionTime{}, lastWrite: map[string]time.Time{}}
}

const (
	// delivered is how long after a write of an object each replica has it from its watch, if nothing disturbs that.
	delivered = 3 * time.Second
	// answered is how long the webhook may go on reading for a call that the API server does not wait for any more.
	answered = 5 * time.Second
)

// isReviewed reports whether a request is one for which the webhook may be called.
func isReviewed(call *world.Call) bool {
	plural := call.Key.Resource.Plural
	return (world.TemplatePath(plural) != nil || plural == jobsResource) && call.Subresource == "" &&
		(call.Verb == "create" || call.Verb == "update" || call.Verb == "patch")
}

func (l *readsLaw) request(call *world.Call) {
	l.tallyRequest(call)
	if l.isProgram(call) {
		l.judgeRead(call)
	}
}

// tallyRequest records a request, of a user or of the program.
func (l *readsLaw) tallyRequest(call *world.Call) {
	if !isReviewed(call) {
		return
	}
	namespace := call.Key.Namespace
	l.running = slices.DeleteFunc(l.running, func(t *tally) bool { return call.Arrived.Sub(t.call.Arrived) > recovery })
	next := &tally{call: call, alone: call.Arrived.Sub(l.lastWrite[namespace]) > answered, metadata: map[id]int{}}
	for _, t := range l.running {
		if t.call.Key.Namespace == namespace {
			t.alone, next.alone = false, false
		}
	}
	l.running = append(l.running, next)
	l.lastWrite[namespace] = call.Arrived
}

// reviewing reports whether the webhook may read in a namespace for a write of a workload.
func (l *readsLaw) reviewing(namespace string, now time.Time) bool {
	return now.Sub(l.lastWrite[namespace]) <= answered ||
		slices.ContainsFunc(l.running, func(t *tally) bool { return t.call.Key.Namespace == namespace })
}

// judgeRead is the law "cost" for a request of the program that reads a config object.
func (l *readsLaw) judgeRead(call *world.Call) {
	if !l.isObjectRead(call) {
		return
	}
	key := idOf(call.Key)
	for _, t := range l.running {
		if call.Partial && t.call.Key.Namespace == key.namespace {
			t.metadata[key]++
		}
	}
	if !call.Partial {
		l.judgeContentRead(call)
	}
	if !l.options.Direct && l.exists(key, call.Arrived) && l.unasked(call) && !l.disturbedReads(key, call.Arrived) {
		l.violate(call.Arrived, broken{"cost", key.String(), "unasked"},
			"%s read it at %s, although the webhook was not called in its namespace",
			call.Client, l.when(call.Arrived))
	}
}

// unasked reports whether a read has no cause: the webhook was not called, and the loop needs no such read.
func (l *readsLaw) unasked(call *world.Call) bool {
	namespace := call.Key.Namespace
	standby := !l.leads(call.Client) && call.Arrived.Sub(l.leaderSince) > recovery
	return (standby || call.Partial && !l.readsLive(namespace, call.Arrived) && !l.adopts(namespace, call.Arrived)) && !l.reviewing(namespace, call.Arrived)
}

// adopts reports whether a workload of a namespace has just become one that the program looks after: what its pods were started with may be
// read live.
func (l *readsLaw) adopts(namespace string, now time.Time) bool {
	return slices.ContainsFunc(l.all, func(w *workload) bool {
		return !w.gone && w.id.namespace == namespace && w.eligible && now.Sub(w.eligibleSince) <= answered
	})
}

// judgeContentRead judges a read of a content: a process reads each version once.
func (l *readsLaw) judgeContentRead(call *world.Call) {
	key := idOf(call.Key)
	known, is := l.known[readKey{call.Client, key}]
	last, exists := l.contents.histories[key].lastTouch()
	if !is || !exists || last.version > known.version {
		return
	}
	l.count("second reads of a version")
	if call.Arrived.Sub(last.at) < delivered || known.at.Sub(l.keysChanged) < recovery || l.disturbedReads(key, known.at) {
		return // what a watch delivers late makes the program forget what it has read since
	}
	l.violate(call.Arrived, broken{"cost", key.String(), "content-again"},
		"%s read its content at %s, although it had read the same version until %s",
		call.Client, l.when(call.Arrived), l.when(known.at))
}

// readsLive reports whether the loop may read the metadata of config objects in a namespace: before it runs a CronJob, creates a Job
// again or restarts a Rollout, since nothing verifies that.
func (l *readsLaw) readsLive(namespace string, now time.Time) bool {
	for _, j := range l.jobs {
		if j.workload.id.namespace == namespace {
			return true
		}
	}
	return slices.ContainsFunc(l.all, func(w *workload) bool {
		restarts := asksForRestarts(w.object) || w.id.plural == rollouts && now.Sub(w.respecified) < notice
		return !w.gone && w.id.namespace == namespace && (restarts || w.id.plural == "cronjobs" && len(l.atOnce(w)) > 0)
	})
}

// exists reports whether a config object has been stored for a while. What is missing is looked for again before it is reported.
func (l *readsLaw) exists(key id, now time.Time) bool {
	last, is := l.contents.histories[key].lastTouch()
	return is && now.Sub(last.at) >= rest
}

// disturbedReads reports whether something may have made the program read an object more than usual: faults, or a custom resource
// that is or was above it.
func (l *readsLaw) disturbedReads(key id, now time.Time) bool {
	return l.graph.leaves[key] || slices.ContainsFunc(l.faults.spans, func(s *span) bool {
		silent := s.kind == "watch-held" || s.kind == "frozen"
		return s.open || s.to.Add(s.recovery()).After(now) || silent && s.to.Add(silentRecovery).After(now)
	})
}

// silentRecovery is how long a watch that was held back, or whose process was frozen, may still count as silent: until its next bookmark, and
// the reads after that, which every replica makes.
const silentRecovery = 3 * time.Minute

// recordRead records the answer to a read of a content.
func (l *readsLaw) recordRead(reply world.Reply) {
	call := reply.Call
	if !l.isObjectRead(call) || call.Partial || reply.Status != http.StatusOK || reply.Lost {
		return
	}
	l.count("contents read")
	key := readKey{call.Client, idOf(call.Key)}
	if l.contents.histories[key.object].touchedWithin(call.ArrivedVersion, l.version) {
		delete(l.known, key) // it is not known which version was read
		return
	}
	l.known[key] = versionTime{reply.At, l.version}
}

func (l *readsLaw) reply(r world.Reply) {
	l.judgeTally(r)
	if l.isProgram(r.Call) {
		l.recordRead(r)
	}
}

// judgeTally is the law "cost" for the webhook: each call of it reads the metadata of an object once.
func (l *readsLaw) judgeTally(reply world.Reply) {
	i := slices.IndexFunc(l.running, func(t *tally) bool { return t.call == reply.Call })
	if i < 0 {
		return
	}
	t := l.running[i]
	l.running = slices.Delete(l.running, i, i+1)
	l.lastWrite[reply.Call.Key.Namespace] = reply.At
	if !t.alone || l.options.Direct || len(t.metadata) == 0 || l.readsLive(t.call.Key.Namespace, reply.At) {
		return
	}
	calls := 0
	for _, name := range reply.Called {
		if name == l.options.WebhookName {
			calls++
		}
	}
	l.count("reads of metadata judged")
	for _, key := range slices.SortedFunc(maps.Keys(t.metadata), func(a, b id) int { return strings.Compare(a.String(), b.String()) }) {
		if n := t.metadata[key]; n > calls && l.exists(key, reply.At) && !l.disturbedReads(key, reply.At) {
			l.violate(reply.At, broken{"cost", key.String(), "metadata"},
				"its metadata was read %d times during a %s of %s at %s, which called the webhook %d times",
				n, t.call.Verb, idOf(t.call.Key), l.when(t.call.Arrived), calls)
		}
	}
}
