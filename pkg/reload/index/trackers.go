package index

import (
	"slices"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// few is up to how many trackers are searched one by one. Nearly all config objects have one tracker or two, and for those a
// list takes a fraction of the memory of a map.
const few = 16

// trackers are the workloads that track one config object. To add or to remove one takes the same time however many there are:
// a namespace with thousands of workloads that share an object may be deleted as a whole.
type trackers struct {
	keys []workload.Key
	// at has the positions in keys; nil while there are few.
	at map[workload.Key]int
}

// with returns the trackers and one more, which must not be among them. The receiver is not to be used any more.
func (t trackers) with(key workload.Key) trackers {
	t.keys = append(t.keys, key)
	switch {
	case t.at != nil:
		t.at[key] = len(t.keys) - 1
	case len(t.keys) > few:
		t.at = make(map[workload.Key]int, 2*len(t.keys))
		for i, k := range t.keys {
			t.at[k] = i
		}
	}
	return t
}

// without returns the trackers but for one; the last takes its place. The receiver is not to be used any more.
func (t trackers) without(key workload.Key) trackers {
	i := t.position(key)
	if i < 0 {
		return t
	}
	last := len(t.keys) - 1
	t.keys[i] = t.keys[last]
	t.keys[last] = workload.Key{}
	t.keys = t.keys[:last]
	if t.at == nil {
		return t
	}
	delete(t.at, key)
	if i < last {
		t.at[t.keys[i]] = i
	}
	if last <= few/2 {
		t.keys, t.at = slices.Clone(t.keys), nil
	}
	return t
}

func (t trackers) position(key workload.Key) int {
	if t.at == nil {
		return slices.Index(t.keys, key)
	}
	if i, ok := t.at[key]; ok {
		return i
	}
	return -1
}
