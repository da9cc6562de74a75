package oracle

import (
	"slices"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// configLog has what is known of config objects and custom resources, and what the program may know of them.
type configLog struct {
	*rules
	*findings
	*chronicle
	*faultLog

	contents contents
	graph    graph
	// traits are those of the config objects that exist.
	traits map[id]traits
	// revisions are the UIDs and resource versions of the config objects, empty for those that do not exist.
	revisions map[id]string
	// keysChanged is when the digest keys changed last, keyVersion at which version: what was read or published before does not count.
	keysChanged time.Time
	keyVersion  int64
}

func newConfigLog(r *rules, f *findings, c *chronicle, faults *faultLog) *configLog {
	return &configLog{
		rules: r, findings: f, chronicle: c, faultLog: faults, contents: newContents(), graph: newGraph(), traits: map[id]traits{},
		revisions: map[id]string{},
	}
}

// commitContent records a stored change of a ConfigMap or a Secret that workloads may track, or that has the configuration or the keys of
// the program.
func (l *ledger) commitContent(c world.Commit) {
	key := idOf(c.Key)
	if c.Key == l.options.Configuration {
		l.commitConfiguration(c)
	}
	if l.isKeySecret(c.Key) {
		l.commitKey(c)
	}
	l.disturbed = c.At
	before := l.contents.histories[key].now()
	changed := l.contents.commit(c)
	l.revisions[key] = revisionOf(c.New)
	l.commitTraits(c)
	if !changed {
		return
	}
	l.count("content changes")
	defer l.regraph(c)
	r := ref{key.plural, key.name}
	for _, w := range l.all {
		if w.gone || !w.lists(key) {
			continue
		}
		s := w.last()
		named := l.creationCounts(w, r)
		adopts := w.needs[r] != optional || !named
		if s != nil && before == absent && adopts && l.believes(w, s, r, absent) {
			w.adopt(c.Version, c.Version, c.At, r).precise = !named
		}
		l.readDue(w, c.At)
	}
}

// creationCounts reports whether the creation of an object restarts a workload. What no annotation lists must have been recorded as absent
// since the flags say so.
func (l *ledger) creationCounts(w *workload, r ref) bool {
	s := w.last()
	return w.triggers[r].named() && (s == nil || l.policy.triggers <= s.version || slices.Contains(w.listed, r))
}

// commitKey records a lost digest key: what was recorded under it means nothing any more.
func (l *ledger) commitKey(c world.Commit) {
	before, after := world.Section(c.Old, "data"), world.Section(c.New, "data")
	l.keyVersion, l.keysChanged = c.Version, c.At
	lost := c.Old != nil && c.New == nil
	for name, value := range before {
		lost = lost || !equal(after[name], value)
	}
	for _, w := range l.all {
		w.requests.allowed++
		w.keyChanged = c.Version
		if lost && !w.gone {
			a := w.adopt(c.Version, c.Version, c.At, ref{})
			a.lost, a.period.waits = true, true
		}
	}
}
