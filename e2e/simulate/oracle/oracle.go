package oracle

import (
	"maps"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// Oracle judges one run: the ledger records what happens, the laws judge it. All calls must come one after the other, in the order of
// what happened.
type Oracle struct {
	*ledger

	// laws has all of them in the order in which they hear of a moment, and so of what they find in it.
	laws []law
	// These answer questions, or judge what no other law hears of.
	hotLoop *hotLoopLaw
	size    *sizeLaw
	visible *visibleLaw
	denied  *deniedLaw
	idle    *idleLaw
	secret  *secretLaw

	nextTick time.Time
}

// New returns an oracle for one run.
func New(options Options) *Oracle {
	l := newLedger(options.complete())
	o := &Oracle{
		ledger: l, hotLoop: newHotLoopLaw(l), size: &sizeLaw{ledger: l}, visible: newVisibleLaw(l), denied: &deniedLaw{ledger: l},
		idle: &idleLaw{ledger: l}, secret: newSecretLaw(l),
	}
	runs, explained := newRunsLaw(l), &explainedLaw{ledger: l}
	recreations := newJobsLaw(l, runs)
	o.laws = []law{
		&promptLaw{ledger: l}, &appearedLaw{ledger: l}, newReadsLaw(l), o.secret, &unharmedLaw{ledger: l}, newWarnedLaw(l), &awayLaw{ledger: l}, o.size, &exclusionLaw{ledger: l},
		&leaderLaw{ledger: l}, o.hotLoop, newContestedLaw(l), newStrippedLaw(l), &blamedLaw{ledger: l}, newRefusedLaw(l), &scopeLaw{ledger: l}, &sidesLaw{ledger: l}, o.visible, o.denied, &gatesLaw{ledger: l}, &keptLaw{ledger: l}, &restampLaw{ledger: l},
		&requiredLaw{ledger: l}, explained, &heldLaw{ledger: l}, newStrategyLaw(l), newRestartLaw(l), runs, &pauseLaw{ledger: l}, &costLaw{ledger: l},
		&currentLaw{ledger: l}, newPublishedLaw(l), &recordLaw{ledger: l}, recreations, newCountedLaw(l, explained, recreations), newPendingLaw(l), o.idle,
		&aliveLaw{ledger: l},
	}
	return o
}

// Commit records and judges a stored change.
func (o *Oracle) Commit(c world.Commit) {
	o.advance(c.At)
	o.begin(c)
	if c.Restored == 0 { // what a restore changes, no one has decided
		for _, l := range o.laws {
			l.storing(c)
		}
	}
	leader := o.leader
	if r, is := o.commit(c); is {
		for _, l := range o.laws {
			l.stamped(r)
		}
	}
	o.follow(leader)
	for _, l := range o.laws {
		l.stored(c)
	}
}

// Request records and judges a request at its arrival.
func (o *Oracle) Request(call *world.Call) {
	o.advance(call.Arrived)
	o.hear(call)
	for _, l := range o.laws {
		l.request(call)
	}
}

// Reply records and judges an answer.
func (o *Oracle) Reply(r world.Reply) {
	o.advance(r.At)
	if r.Call == nil {
		return
	}
	if o.isProgram(r.Call) {
		o.slow.end(r)
		o.recordCollision(r)
	}
	for _, l := range o.laws {
		l.reply(r)
	}
}

// Fault records a fault.
func (o *Oracle) Fault(f Fault) {
	o.advance(f.At)
	o.recordFault(f)
}

// Leader records that a replica leads from now on.
func (o *Oracle) Leader(client string, at time.Time) {
	o.advance(at)
	if before := o.leader; !o.leads(client) {
		o.lead(client, at)
		o.follow(before)
	}
}

// follow lets the laws hear of another leader than the one before.
func (o *Oracle) follow(before string) {
	if o.predecessor == "" || before == o.leader {
		return
	}
	for _, l := range o.laws {
		l.succeeded()
	}
}

// Restored records that the state of a version was restored. All changes by which that was done have come before.
func (o *Oracle) Restored(at time.Time, back int64) {
	o.advance(at)
	o.count("restores")
	for _, l := range o.laws {
		l.restored(back)
	}
}

// Timing says with which gates a process was started, where these are not those of the Options.
func (o *Oracle) Timing(client string, settle, settleMax, refractory time.Duration) {
	o.timings[client] = timing{settle, settleMax, refractory}
}

// Jitter says how long a request of a user may be under way although nothing disturbs it.
func (o *Oracle) Jitter(most time.Duration) { o.jitter = most }

// Rescope records other flags.
func (o *Oracle) Rescope(at time.Time, s Scope) {
	o.advance(at)
	o.rescope(at, s)
}

// Repolicy records other flags about restarts.
func (o *Oracle) Repolicy(at time.Time, p Policy) {
	o.advance(at)
	o.repolicy(at, p)
}

// Metrics records and judges the metrics of a replica.
func (o *Oracle) Metrics(client string, families map[string]*dto.MetricFamily, at time.Time) {
	o.advance(at)
	o.count("scrapes")
	for _, l := range o.laws {
		l.scraped(client, families, at)
	}
}

// Refused judges an object that a controller wanted to store and that the API server refused as invalid.
func (o *Oracle) Refused(at time.Time, key world.Key, object world.Object) {
	o.advance(at)
	o.size.refused(at, key, object)
}

// Idle judges a time in which users did nothing and nothing was pending.
func (o *Oracle) Idle(from, to time.Time) {
	o.advance(to)
	o.idle.judge(from, to)
}

// AskWhy returns a workload of which the program must say that a watch or its reload fails; false if there is none. The workload
// depends on what cannot be watched, which the leader has had the time to report.
func (o *Oracle) AskWhy(now time.Time) (Question, bool) {
	o.advance(now)
	if o.faults.two || !o.faults.up[o.leader] || o.faults.out(o.leader) || o.disturbedBesides(now) {
		return Question{}, false
	}
	if q, is := o.visible.ask(now); is {
		return q, true
	}
	return o.denied.ask(now)
}

// Why judges what `pod-reloader why` prints about the workload of a question.
func (o *Oracle) Why(q Question, printed string, at time.Time) {
	o.advance(at)
	o.secret.search(at, "why", "why", printed)
	if q.denied.IsZero() {
		o.visible.judgeWhy(q, printed, at)
		return
	}
	o.denied.judgeWhy(q, printed, at)
}

// Log judges a line that a process logs.
func (o *Oracle) Log(client, line string, at time.Time) {
	o.count("log lines searched for Secrets")
	o.secret.search(at, "log", client, line)
}

// Looping reports whether the program was found in a hot loop: there is no sense in going on.
func (o *Oracle) Looping() bool { return o.hotLoop.looping }

// Quiet judges what must hold when nothing is pending and all faults have ended long ago.
func (o *Oracle) Quiet(now time.Time) {
	o.advance(now)
	o.tick(now)
	o.count("quiet")
	for _, w := range o.all {
		for _, l := range o.laws {
			l.settled(w, now)
		}
	}
	for _, l := range o.laws {
		l.quiet(now)
	}
}

// Owes reports whether the program still has something to do: a reload that is due, an Event of a reload, or the report that
// it is no longer blind. Then it makes sense to wait before [Oracle.Quiet].
func (o *Oracle) Owes(now time.Time) bool {
	o.advance(now)
	return slices.ContainsFunc(o.laws, func(l law) bool { return l.owes(now) })
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
		if w.gone {
			continue
		}
		for _, l := range o.laws {
			l.watch(w, now)
		}
		o.closePeriods(w, now)
		o.makeSure(w, now)
		o.readDue(w, now)
	}
	for _, l := range o.laws {
		l.tick(now)
	}
}

// Violations returns what was found, in the order in which it was found.
func (o *Oracle) Violations() []Violation { return slices.Clone(o.violations) }

// Describe returns how much was seen, judged and excused.
func (o *Oracle) Describe() map[string]int { return maps.Clone(o.counters) }
