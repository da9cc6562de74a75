package stamp

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// act is one thing that can happen. It is false where it cannot happen now.
type act struct {
	name string
	do   func(*cell) bool
}

// acts are what the exploration combines while the webhook answers.
func acts() []act {
	all := []act{
		{"the loop settles", func(c *cell) bool { c.settle(); return true }},
		{"put without our annotations", actPut(func(w *write) { w.managed = Managed{} })},
		{"put that lacks a later webhook's field", actPut(func(w *write) { w.lacks = true })},
		{"put without our annotations that lacks a later webhook's field", actPut(func(w *write) { w.lacks, w.managed = true, Managed{} })},
		{"put with the annotations of the first revision", func(c *cell) bool {
			w := c.same()
			w.managed = Managed{Hash: c.revisions[0].hash, Record: c.revisions[0].copied[Record]}
			w.managed.setFields(strategy.Parse(c.revisions[0].fields))
			return c.edit(w)
		}},
		{"ignored on or off", func(c *cell) bool {
			w := c.same()
			w.ignored = !w.ignored
			return c.edit(w)
		}},
		{"ignored on or off by a put without our annotations", func(c *cell) bool {
			w := c.same()
			w.ignored, w.managed = !w.ignored, Managed{}
			return c.edit(w)
		}},
		{"one object is listed or not", func(c *cell) bool {
			w := c.same()
			w.listed[0] = !w.listed[0]
			c.store(w) // it stamps at once
			return true
		}},
		{"opted out or in by a put without our annotations", func(c *cell) bool {
			w := c.same()
			w.managed = Managed{}
			if w.listed = [2]bool{}; !c.listed[1] {
				w.listed = [2]bool{true, true}
				c.store(w) // it stamps at once
				return true
			}
			return c.edit(w)
		}},
		{"verified reload", actPut(func(w *write) { w.managed[Dummy] = "given" })},
		{"second webhook on or off", func(c *cell) bool { c.other = !c.other; return true }},
		{"key rotated", func(c *cell) bool {
			if c.ring != 0 {
				return false
			}
			c.ring = 1
			return true
		}},
		{"key lost", actLose},
		{"release", actRelease(2, false)},
		{"release that is stuck", actRelease(1, false)},
		{"release by a put without our annotations", actRelease(2, true)},
		{"stuck release by a put without our annotations", actRelease(1, true)},
	}
	for object := range objects {
		for content := range 3 {
			all = append(all, act{fmt.Sprintf("%s becomes %d", objects[object], content), actSet(object, content)})
		}
		all = append(all, act{fmt.Sprintf("%s gets a label", objects[object]), func(c *cell) bool {
			c.touched[object] = !c.touched[object]
			return c.contents[object] != absent
		}})
	}
	for i := range 3 {
		all = append(all, act{fmt.Sprintf("undo to revision %d", i), actUndo(i)})
	}
	return all
}

// actPut is a write that changes no more than what the user forgets.
func actPut(change func(*write)) func(*cell) bool {
	return func(c *cell) bool {
		w := c.same()
		change(&w)
		if w.managed[Dummy] == "given" {
			w.managed[Dummy] = c.hash()
		}
		return c.edit(w)
	}
}

// edit is a write of a user that does not change the template: pods restart only if that is due.
func (c *cell) edit(w write) bool {
	before := c.revisions[c.current]
	due, _ := c.due(before)
	stored := c.store(w)
	if !stored {
		c.fail("the write is rejected")
	}
	if now := c.revisions[c.current]; !c.unjudged() && !due && !before.excused() && now.differs(before) {
		c.fail("P2: pods restart without cause")
	}
	return true
}

// actRelease brings another image.
func actRelease(image int, forgets bool) func(*cell) bool {
	return func(c *cell) bool {
		w := c.same()
		if w.image += image; w.image > 4 {
			return false
		}
		if stuck(c.image) {
			w.image = c.image + 1 // the mended one
		}
		if forgets {
			w.managed = Managed{}
		}
		before := c.revisions[c.current]
		due, held := c.due(before)
		c.store(w)
		if now := c.revisions[c.current]; !c.unjudged() && !due && !held && !before.excused() && !c.ignored && c.listed != [2]bool{} && (now.hash != before.hash || now.fields != before.fields) {
			c.fail("P2: a release that changes no configuration changes the hash")
		}
		c.excuseMissing()
		if before.beyond && c.managed[Hash] == before.hash {
			c.revisions[c.current].beyond = true
		}
		return true
	}
}

// actUndo brings an earlier revision back: the template, and for a Deployment the annotations that were copied.
func actUndo(to int) func(*cell) bool {
	return func(c *cell) bool {
		if to >= len(c.revisions) || to == c.current || stuck(c.revisions[to].image) {
			return false
		}
		r := c.revisions[to]
		w := c.same()
		w.image = r.image
		w.managed = c.managed.only(Record, LastReload)
		if c.deployment {
			w.managed, w.listed = maps.Clone(r.copied), r.listed
		}
		w.managed.put(Managed{Hash: r.hash, Restart: r.restart, Fields: r.fields}, stampKeys()...)
		for _, key := range stampKeys() {
			if w.managed[key] == "" {
				delete(w.managed, key)
			}
		}
		sameImage := r.image == c.image
		if !c.store(w) {
			c.fail("rollout undo is rejected")
		}
		key, hashed := digest.KeyOf(r.hash)
		_, owned := rings[c.ring].Key(key)
		if !c.deployment && (!hashed || !owned) {
			// A known limit: nothing says what the pods from before the first stamp, or from before the loss of a key,
			// have.
			c.revisions[to].beyond = true
			return true
		}
		if !c.deployment && r.over != c.listed {
			return true // a known limit: the old hash is over other objects
		}
		due, held := c.due(r)
		if !c.unjudged() && !sameImage && r.alive && !due && !held && !r.excused() && c.current != to {
			c.fail("P2: a rollback replaces the pods of revision %d", to)
		}
		c.excuseMissing()
		return true
	}
}

// excuseMissing makes no promise about a rollout while a required object is missing. It is a known limit: the Record
// then says what the pods before it had, and those of the rollout start with whatever comes.
func (c *cell) excuseMissing() {
	for i := range objects {
		if c.listed[i] && c.required[i] && c.contents[i] == absent {
			c.revisions[c.current].beyond = true
		}
	}
}

// actSet changes the content of an object. Pods that wait for a required object start with it by themselves.
func actSet(object, content int) func(*cell) bool {
	return func(c *cell) bool {
		if c.contents[object] == content {
			return false
		}
		for i := range c.revisions {
			if r := &c.revisions[i]; c.required[object] && r.started[object] == absent {
				r.started[object] = content
			}
		}
		c.contents[object], c.touched[object] = content, false
		return true
	}
}

// actLose replaces the keys, where nothing is due: what was due then is a known limit, and so is the way back.
func actLose(c *cell) bool {
	due, held := c.due(c.revisions[c.current])
	if c.ring == 2 || due || held || c.ignored {
		return false
	}
	c.ring = 2
	for i := range c.revisions {
		c.revisions[i].beyond = i != c.current
	}
	c.settle() // what changes between the loss and the adoption is not seen
	return true
}

// step plays one act and checks what must hold afterwards.
func (c *cell) step(a act) bool {
	before := c.revisions[c.current]
	due, _ := c.due(before)
	c.now += 60
	c.trace = append(c.trace, a.name)
	if !a.do(c) {
		return false
	}
	if a.name != "the loop settles" {
		return true
	}
	now := c.revisions[c.current]
	if !due && !before.excused() && now.differs(before) {
		c.fail("P2: the loop restarts pods without cause")
	}
	if left, _ := c.due(now); left && !c.ignored && !now.excused() {
		c.fail("P1: the loop leaves pods with another configuration")
	}
	c.doubt()
	return true
}

// key identifies what matters of a cell for what can happen to it.
func (c *cell) key() string {
	var b strings.Builder
	fmt.Fprint(&b, c.contents, c.touched, c.ring, c.image, c.listed, c.ignored, c.other, c.away, c.current, c.managed[Record], c.managed[Dummy])
	for _, r := range c.revisions {
		fmt.Fprint(&b, "|", r.image, r.hash, r.restart != "", timeless(r.fields), r.alive, r.started, r.copied[Record], r.listed, r.over, r.beyond, r.doubtful)
	}
	return b.String()
}

// timeless returns fields without the time in them.
func timeless(text string) strategy.Fields {
	fields := strategy.Parse(text)
	if fields.From != "" {
		source := strategy.ParseSource(fields.From)
		source.ObservedAt = 0
		fields.From = source.String()
	}
	return fields
}

// differs reports whether the template of another revision leads to other pods, the images put aside.
func (r revision) differs(other revision) bool {
	return r.hash != other.hash || r.restart != other.restart || r.fields != other.fields
}

func (c *cell) clone() *cell {
	next := *c
	next.managed = maps.Clone(c.managed)
	next.revisions = slices.Clone(c.revisions)
	next.trace = slices.Clone(c.trace)
	return &next
}

// depth is how many acts a sequence has. The number of states grows tenfold with each.
var depth = flag.Int("depth", 3, "acts in a sequence of the exploration")

// explore plays all sequences of acts up to a depth, each state once.
func explore(t *testing.T, start *cell, acts []act, depth int) {
	t.Helper()
	seen := map[string]bool{start.key(): true}
	frontier := []*cell{start}
	for range depth {
		var next []*cell
		for _, from := range frontier {
			for _, a := range acts {
				to := from.clone()
				if !to.step(a) {
					continue
				}
				require.Empty(t, to.broken, "after:\n  %s\nmarks %v\nrevisions %+v\ncontents %v",
					strings.Join(to.trace, "\n  "), to.managed, to.revisions, to.contents)
				if key := to.key(); !seen[key] && len(to.revisions) <= 4 {
					seen[key] = true
					next = append(next, to)
				}
			}
		}
		frontier = next
	}
	t.Logf("%d states", len(seen))
}

// under returns the same workload under a strategy.
func (c *cell) under(s annotation.ReloadStrategy) *cell {
	c.strategy = s
	return c
}

// startedCell returns a workload with the contents 1 and 1, stamped at its creation or found by an installation.
func startedCell(deployment, stamped, required bool) *cell {
	c := &cell{
		deployment: deployment, required: [2]bool{required, false}, contents: [2]int{1, 1}, listed: [2]bool{true, true}, image: 0,
		managed: Managed{}, generation: 1, now: 1_800_000_000,
	}
	w := c.same()
	if stamped {
		c.store(w)
	} else {
		c.commit(w)
	}
	c.settle()
	return c
}

// startedCells returns the cells that the sequences of most tests start from, by their names.
func startedCells() map[string]*cell {
	return map[string]*cell{
		"stamped Deployment":    startedCell(true, true, false),
		"installed Deployment":  startedCell(true, false, false),
		"stamped StatefulSet":   startedCell(false, true, false),
		"installed StatefulSet": startedCell(false, false, false),
		"required, Deployment":  startedCell(true, true, true),
		"required, StatefulSet": startedCell(false, true, true),
	}
}

func TestPromisesHoldInEverySequence(t *testing.T) {
	t.Parallel()
	starts := startedCells()
	starts["Deployment, env-vars"] = startedCell(true, true, false).under(annotation.EnvVars)
	starts["Deployment, annotations"] = startedCell(true, true, false).under(annotation.Annotations)
	starts["StatefulSet, env-vars"] = startedCell(false, true, false).under(annotation.EnvVars)
	starts["StatefulSet, annotations"] = startedCell(false, true, false).under(annotation.Annotations)
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore(t, start, acts(), *depth)
		})
	}
}
