package pattern

import "github.com/pod-reloader/pod-reloader/pkg/reference"

// quick is how many steps of matching a caller waits for, some milliseconds: watches call Set and Put, and the events of all namespaces
// wait for them. What can take longer is done by a goroutine of the namespace, and all that comes meanwhile after it.
const quick = 500_000

// backlog is what waits for the goroutine of a namespace: a batch that is worked off, and the one that is collected meanwhile. So nothing
// waits for more than two batches, whatever comes.
type backlog[K comparable] struct {
	now, next batch[K]
	// memory is how many bytes the patterns of a batch may take.
	memory int
}

// batch has what came for workloads and config objects: only the latest of each, so that it does not grow with the number of events.
type batch[K comparable] struct {
	keys []K
	uses map[K][]Use
	// memory is how many bytes are left for patterns, users how many workloads have each of them.
	memory  int
	users   map[use]int
	refs    []reference.Ref
	changes map[reference.Ref]objectChange[K]
}

// objectChange is what became of a config object; later is called with the workloads that it concerns.
type objectChange[K comparable] struct {
	exists bool
	later  func([]K)
}

// set adds the patterns of a workload.
func (b *batch[K]) set(key K, patterns []Use) {
	if b.uses == nil {
		b.uses, b.users = map[K][]Use{}, map[use]int{}
	}
	earlier, waits := b.uses[key]
	if !waits {
		b.keys = append(b.keys, key)
	}
	for _, u := range earlier {
		b.users[u.use()]--
		b.memory += b.cost(u)
	}
	patterns = within(patterns, b.memory, b.cost)
	for _, u := range patterns {
		b.memory -= b.cost(u)
		b.users[u.use()]++
	}
	b.uses[key] = patterns
}

// cost returns how many bytes it counts to give a pattern to one more workload.
func (b *batch[K]) cost(u Use) int {
	switch {
	case u.Pattern == everything:
		return 0
	case b.users[u.use()] > 0:
		return pairMemory
	default:
		return pairMemory + u.Pattern.memory()
	}
}

// change adds what became of a config object.
func (b *batch[K]) change(ref reference.Ref, n objectChange[K]) {
	if b.changes == nil {
		b.changes = map[reference.Ref]objectChange[K]{}
	}
	earlier, waits := b.changes[ref]
	if !waits {
		b.refs = append(b.refs, ref)
	}
	if n.later == nil {
		n.later = earlier.later
	}
	b.changes[ref] = n
}

// take takes out what is to be done next, or returns nil. slow says that it can take long.
func (b *backlog[K]) take(n *namespaceIndex[K]) (do func(), slow bool) {
	if len(b.now.keys)+len(b.now.refs) == 0 {
		b.now, b.next = b.next, batch[K]{memory: b.memory}
	}
	return b.now.take(n)
}

// take is that of a backlog. Patterns come before config objects: so no object is missed by a workload that waits, too.
func (b *batch[K]) take(n *namespaceIndex[K]) (do func(), slow bool) {
	if len(b.keys) > 0 {
		key := b.keys[0]
		patterns := b.uses[key]
		b.keys = b.keys[1:]
		delete(b.uses, key)
		return func() { n.set(key, patterns) }, n.effort(key, patterns) > quick
	}
	if len(b.refs) == 0 {
		return nil, false
	}
	ref := b.refs[0]
	change := b.changes[ref]
	b.refs = b.refs[1:]
	delete(b.changes, ref)
	return func() {
		keys := n.changed(ref, change.exists)
		if change.later != nil && len(keys) > 0 {
			change.later(keys)
		}
	}, n.effortOf(ref) > quick
}

// process does what waits, until nothing does; each part that can take long takes a turn. No other goroutine uses the tables while the
// namespace is busy.
func (n *namespaceIndex[K]) process(turn chan struct{}) {
	for {
		n.mu.Lock()
		do, slow := n.backlog.take(n)
		n.busy = do != nil
		n.mu.Unlock()
		switch {
		case do == nil:
			return
		case slow:
			turn <- struct{}{}
			do()
			<-turn
		default:
			do()
		}
	}
}
