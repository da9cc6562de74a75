package pattern

import "github.com/pod-reloader/pod-reloader/pkg/reference"

// quick is how many steps of matching a caller waits for, some milliseconds: watches call Set and Put, and the events of all namespaces
// wait for them. What can take longer is done by a goroutine of the namespace, and all that comes meanwhile after it.
const quick = 500_000

// backlog is what waits for the goroutine of a namespace. Of what comes for one workload or one config object the last counts, so that
// it does not grow with the number of events.
type backlog[K comparable] struct {
	keys []K
	uses map[K][]Use
	refs []reference.Ref
	news map[reference.Ref]news[K]
}

// news is what became of a config object; later is called with the workloads that it concerns.
type news[K comparable] struct {
	exists bool
	later  func([]K)
}

// set adds the patterns of a workload.
func (b *backlog[K]) set(key K, patterns []Use) {
	if b.uses == nil {
		b.uses = map[K][]Use{}
	}
	if _, waits := b.uses[key]; !waits {
		b.keys = append(b.keys, key)
	}
	b.uses[key] = patterns
}

// change adds what became of a config object.
func (b *backlog[K]) change(ref reference.Ref, n news[K]) {
	if b.news == nil {
		b.news = map[reference.Ref]news[K]{}
	}
	earlier, waits := b.news[ref]
	if !waits {
		b.refs = append(b.refs, ref)
	}
	if n.later == nil {
		n.later = earlier.later
	}
	b.news[ref] = n
}

// next takes out what is to be done next, or returns nil. Patterns come before config objects: so no object is missed by a workload that
// waits, too.
func (b *backlog[K]) next(n *inNamespace[K]) func() {
	if len(b.keys) > 0 {
		key := b.keys[0]
		patterns := b.uses[key]
		b.keys = b.keys[1:]
		delete(b.uses, key)
		return func() { n.set(key, patterns) }
	}
	if len(b.refs) == 0 {
		return nil
	}
	ref := b.refs[0]
	change := b.news[ref]
	b.refs = b.refs[1:]
	delete(b.news, ref)
	return func() {
		keys := n.changed(ref, change.exists)
		if change.later != nil && len(keys) > 0 {
			change.later(keys)
		}
	}
}

// workOff does what waits, until nothing does; each part takes a turn. No other goroutine uses the tables while the namespace is busy.
func (n *inNamespace[K]) workOff(turn chan struct{}) {
	for {
		n.mu.Lock()
		do := n.backlog.next(n)
		n.busy = do != nil
		n.mu.Unlock()
		if do == nil {
			return
		}
		turn <- struct{}{}
		do()
		<-turn
	}
}
