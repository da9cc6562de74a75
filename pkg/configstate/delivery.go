package configstate

// origin is where something comes from: a read that began when the watch had delivered so much, or the watch, which is the zero value.
type origin struct {
	read      bool
	delivered uint64
}

// deliveries count what each watch has delivered. The lock of the cache that takes it in guards them.
type deliveries map[*watcher]uint64

// read returns the origin of a read that begins now.
func (d deliveries) read(w *watcher) origin { return origin{read: true, delivered: d[w]} }

// accepts reports whether something is taken in. What a read has found is not, if the watch has delivered anything since that may
// be newer. Reads do not count: those of other objects are under way at the same time.
func (d deliveries) accepts(w *watcher, from origin) bool {
	if from.read {
		return d[w] == from.delivered
	}
	d[w]++
	return true
}
