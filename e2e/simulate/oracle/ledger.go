package oracle

import (
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// ledger has all that was seen, in parts by subject.
type ledger struct {
	*rules
	*findings
	*chronicle
	*faultLog
	*configLog
	*roster
	*jobLog
	*eventLog
	*podLog

	scope  scope
	policy policy
	// disturbed is when something happened last that may make the program read.
	disturbed time.Time
	// learned has the annotations that the program writes on templates.
	learned map[string]bool
}

// newLedger returns an empty ledger.
func newLedger(options Options) *ledger {
	r, f, c, all := &rules{options}, newFindings(), &chronicle{}, newRoster()
	faults := newFaultLog(r, f)
	config := newConfigLog(r, f, c, faults)
	return &ledger{
		rules: r, findings: f, chronicle: c, faultLog: faults, configLog: config, roster: all, jobLog: newJobLog(config),
		eventLog: newEventLog(r, f), podLog: newPodLog(r, f, all), scope: newScope(options), learned: map[string]bool{},
	}
}

// begin records the time and the version of a change, and nothing else of it.
func (l *ledger) begin(c world.Commit) {
	if w := l.workloads[idOf(c.Key)]; w != nil {
		l.closePeriods(w, c.At)
	}
	l.version = c.Version
	l.clock = append(l.clock, versionTime{c.At, c.Version})
}

// commit records a stored change, and returns whether it is one of the pod template of a workload that had one before.
func (l *ledger) commit(c world.Commit) (r restamp, is bool) {
	switch plural := c.Key.Resource.Plural; {
	case world.TemplatePath(plural) != nil:
		return l.commitWorkload(c)
	case isConfig(plural):
		if _, manifest := l.manifestOf(c.Key); !manifest {
			l.commitContent(c)
		}
	case isReferent(plural):
		l.commitReferent(c)
	default:
		l.commitOther(c)
	}
	return restamp{}, false
}

// commitOther records a stored change of what belongs to workloads or to the program.
func (l *ledger) commitOther(c world.Commit) {
	switch c.Key.Resource.Plural {
	case "namespaces":
		l.commitNamespace(c)
	case jobsResource:
		l.commitJob(c)
	case "pods":
		l.commitPod(c)
	case "replicasets":
		l.commitReplicaSet(c)
	case "controllerrevisions":
		l.commitRevision(c)
	case "events":
		l.commitEvent(c)
	case "leases":
		l.commitLease(c)
	}
}

// commitNamespace records the labels of a namespace, and what they select.
func (l *ledger) commitNamespace(c world.Commit) {
	name := c.Key.Name
	l.disturbed = c.At
	if c.New == nil {
		delete(l.namespaces, name)
	} else {
		l.namespaces[name] = &namespaceState{labels: texts(world.Labels(c.New)), ending: deleting(c.New), believed: l.believedLabels(c)}
	}
	for _, w := range l.all {
		if w.id.namespace == name && !w.gone {
			w.requests.allowed++
			l.readScope(w, c.At, c.Version)
			l.readDue(w, c.At)
		}
	}
}
