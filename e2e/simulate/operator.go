package simulate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/act"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// operator is the model of the controller of custom resources: some time after an edit it writes observedGeneration and the
// condition Ready. It accepts each spec but that of act.InvalidMode; now and then it finds a valid one not ready at first.
type operator struct {
	random *rand.Rand

	mu    sync.Mutex
	dirty map[world.Key]bool
}

func newOperator(seed uint64) *operator {
	return &operator{random: rand.New(rand.NewPCG(seed, 5)), dirty: map[world.Key]bool{}}
}

// note records a stored change. It may be called from any goroutine.
func (o *operator) note(c world.Commit) {
	if c.New == nil || !slices.Contains(world.GraphResources(), c.Key.Resource) || observed(c.New) == generation(c.New) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dirty[c.Key] = true
}

// take returns what has changed since the last call, sorted.
func (o *operator) take() []world.Key {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.dirty) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(o.dirty), func(a, b world.Key) int { return strings.Compare(a.String(), b.String()) })
	clear(o.dirty)
	return keys
}

// operate lets the operator look at what has changed: mostly soon, sometimes late.
func (s *simulation) operate() {
	for _, key := range s.operator.take() {
		r := s.operator.random
		most := []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second, 8 * time.Second, 30 * time.Second}[r.IntN(6)]
		after := time.Millisecond + time.Duration(r.Int64N(int64(most)))
		if r.IntN(8) > 0 {
			s.after(after, func() { s.judgeReferent(key, true) })
			continue
		}
		s.after(after, func() { s.judgeReferent(key, false) })
		s.after(after+time.Second+time.Duration(r.Int64N(int64(10*time.Second))), func() { s.judgeReferent(key, true) })
	}
}

// judgeReferent writes the status of a custom resource.
func (s *simulation) judgeReferent(key world.Key, willing bool) {
	object, ok := s.api.Get(key)
	if !ok {
		return
	}
	spec, _ := object["spec"].(map[string]any)
	ready := "True"
	if !willing || spec["mode"] == act.InvalidMode {
		ready = "False"
	}
	status, _ := object["status"].(map[string]any)
	status = maps.Clone(status)
	if status == nil {
		status = world.Object{}
	}
	status["observedGeneration"] = generation(object)
	condition := world.Object{"type": "Ready", "status": ready}
	if key.Resource == world.Proxies { // not every operator says of which generation a condition is
		condition["observedGeneration"] = generation(object)
	}
	status["conditions"] = []any{condition}
	object = maps.Clone(object)
	object["status"] = status
	if _, err := s.api.StoreStatus(key, object); err != nil {
		s.note("the operator cannot write the status of %s: %v", key, err)
	}
}

func generation(o world.Object) int64 { return world.Meta(o).GetGeneration() }

func observed(o world.Object) int64 {
	status, _ := o["status"].(map[string]any)
	n, _ := status["observedGeneration"].(int64)
	return n
}
