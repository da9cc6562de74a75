package stamp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/policy"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/strategy"
)

// absent is the content of an object that does not exist.
const absent = 0

// objects are the config objects of a cell. Their contents are small numbers.
var objects = []reference.Ref{{Kind: reference.ConfigMap, Name: "a"}, {Kind: reference.Secret, Name: "b"}}

// lacking is added to an image where the write lacks a field that a later webhook adds.
const lacking = 1000

// revision is a template that was rolled out: a ReplicaSet, or a ControllerRevision with its pods.
type revision struct {
	image         int
	hash, restart string
	// fields are what a strategy of Reloader has on the template.
	fields string
	// stuck says that its pods do not become ready, so that those of the revision before it stay.
	stuck bool
	// alive says that it has pods, started with the contents that were there then.
	alive   bool
	started [2]int
	// copied are the annotations of the Deployment that its controller has copied to the ReplicaSet.
	copied Managed
	// listed is what was listed when it was the current one.
	listed [2]bool
	// over is what its hash is over: a list that is edited while no webhook answers does not change the hash.
	over [2]bool
	// beyond says that no promise is made about a way back to it.
	beyond bool
	// doubtful says that a write that no webhook has judged left managed annotations that do not say what its pods were
	// started with.
	doubtful bool
}

// excused says that no promise is made about the pods of the revision.
func (r revision) excused() bool { return r.beyond || r.doubtful }

// cell is a small world: one workload and its config objects, with the webhook, the loop, and the pods. It is a value
// that is copied, never changed by a copy. It plays the API server at the level of Requests.
type cell struct {
	// deployment says that rollout undo brings the annotations, and that writes of annotations raise the generation.
	deployment bool
	required   [2]bool

	contents [2]int
	touched  [2]bool
	ring     int

	image      int
	listed     [2]bool
	ignored    bool
	managed    Managed
	generation int64
	now        int64
	// other says that a second mutating webhook touches every write, so that ours is called again.
	other bool
	// strategy is what a reload writes besides the hash.
	strategy annotation.ReloadStrategy
	// away says that no webhook answers, and direct that none ever does.
	away, direct bool

	revisions []revision
	current   int
	// trace names the acts that led here.
	trace []string
	// broken says what promise was broken; empty if none was.
	broken string
}

// rings are the digest keys as they may be in turn: a rotation goes from the first to the second, the third has lost
// both.
var rings = func() [3]digest.Ring {
	ring := func(names ...string) digest.Ring {
		data := map[string][]byte{}
		for _, name := range names {
			data[name] = []byte(fmt.Sprintf("%-32s", "key "+name))
		}
		r, err := digest.NewRing(data)
		if err != nil {
			panic(err)
		}
		return r
	}
	return [3]digest.Ring{ring("1"), ring("1", "2"), ring("3")}
}()

// state returns the live state of an object. Its resourceVersion says no more than that equal ones mean equal contents.
func (c *cell) state(object int) digest.State {
	if c.contents[object] == absent {
		return digest.State{Absent: true}
	}
	key := stateKey{object, c.contents[object], c.touched[object], c.ring}
	return cellStates[key]
}

type stateKey struct {
	object, content int
	touched         bool
	ring            int
}

var cellStates = func() map[stateKey]digest.State {
	states := map[stateKey]digest.State{}
	for object, ref := range objects {
		for content := 1; content <= 3; content++ {
			for _, touched := range []bool{false, true} {
				for ring := range rings {
					made := digest.OfConfigMap(&corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: ref.Name}, Data: map[string]string{"k": strconv.Itoa(content)},
					})
					version := strconv.Itoa(10 * content)
					if touched {
						version += "1"
					}
					states[stateKey{object, content, touched, ring}] = digest.StateOf(made, "uid", version, rings[ring])
				}
			}
		}
	}
	return states
}()

func (c *cell) inputs() Inputs {
	states := map[reference.Ref]digest.State{}
	for i, ref := range objects {
		states[ref] = c.state(i)
	}
	return Inputs{States: states, Ring: rings[c.ring], Namespace: "test", Now: time.Unix(c.now, 0)}
}

// write is what a user, a controller or the loop wants to store.
type write struct {
	image   int
	listed  [2]bool
	ignored bool
	managed Managed
	// lacks says that the write lacks a field that a later webhook adds.
	lacks bool
}

// same returns the write that changes nothing.
func (c *cell) same() write {
	return write{image: c.image, listed: c.listed, ignored: c.ignored, managed: maps.Clone(c.managed)}
}

func (c *cell) view(w write) View {
	intent := annotation.Intent{Tracked: map[reference.Ref]annotation.Trigger{}}
	required := map[reference.Ref]bool{}
	for i, ref := range objects {
		required[ref] = c.required[i]
		if w.listed[i] {
			intent.Asked = true
			intent.Tracked[ref] = annotation.Trigger{OnCreate: true, OnDelete: true}
			intent.ConfigMaps = append(intent.ConfigMaps, ref.Name)
		}
	}
	view := View{
		Excluded: w.ignored, Ignored: w.ignored, Intent: intent, Required: required, Managed: w.managed,
		Generation: c.generation, WorkloadBudget: 1 << 17, TemplateBudget: 1 << 17,
	}
	if c.strategy != "" {
		view.strategy, view.fields, view.template = c.strategy, w.managed.fields(), templateWith(w.managed.fields())
	}
	return view
}

// templateWith returns a pod template with the fields of a strategy.
func templateWith(fields strategy.Fields) map[string]any {
	env := []any{map[string]any{"name": "X", "value": "x"}}
	for _, v := range fields.Variables {
		env = append(env, map[string]any{"name": v.Name, "value": v.Value})
	}
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "env": env}}}}
}

// pass is one call of the webhook.
func (c *cell) pass(w write) (Managed, *Rejection) {
	image := w.image
	if w.lacks {
		image += lacking
	}
	req := Write{Create: len(c.revisions) == 0, New: c.view(w), TemplateChanged: image != c.image}
	if !req.Create {
		req.Old = c.view(c.same())
	}
	plan := Choose(req)
	inputs := c.inputs()
	if len(plan.Reads) == 0 {
		inputs.States = nil
	}
	result := plan.Apply(req, inputs)
	return result.Managed, result.Reject
}

// store is the API server: admission, then what is stored and what its controller makes of it.
func (c *cell) store(w write) bool {
	stored := c.land(w)
	if c.unjudged() {
		c.doubt()
	}
	return stored
}

// land is store for a write of the loop, which leaves no doubt.
func (c *cell) land(w write) bool {
	if c.unjudged() {
		w.lacks = false
		c.commit(w)
		return true
	}
	managed, rejection := c.pass(w)
	if rejection != nil {
		return false
	}
	if c.other || w.lacks {
		w.lacks, w.managed = false, managed
		if managed, rejection = c.pass(w); rejection != nil {
			return false
		}
	}
	w.managed = managed
	c.commit(w)
	return true
}

func (c *cell) commit(w write) {
	before := c.same()
	c.image, c.listed, c.ignored, c.managed = w.image, w.listed, w.ignored, w.managed
	stamped := !before.managed.sameStamp(w.managed)
	if before.image != w.image || stamped || c.deployment && !maps.Equal(before.managed, w.managed) {
		c.generation++
	}
	c.rollOut()
}

// rollOut is the controller of the workload and the kubelet: the template finds its revision, or becomes a new one.
func (c *cell) rollOut() {
	hash, restart := c.managed[Hash], c.managed[Restart]
	same := func(r revision) bool {
		return r.image == c.image && r.hash == hash && r.restart == restart && r.fields == c.managed[Fields]
	}
	c.revisions = slices.Clone(c.revisions)
	if c.current = slices.IndexFunc(c.revisions, same); c.current < 0 {
		c.revisions = append(c.revisions, revision{image: c.image, hash: hash, restart: restart, fields: c.managed[Fields], stuck: stuck(c.image), over: c.listed})
		c.current = len(c.revisions) - 1
	}
	r := &c.revisions[c.current]
	if !r.alive {
		r.alive, r.started = true, c.contents
	}
	for i := range c.revisions {
		if i != c.current && (!r.stuck || c.revisions[i].stuck) {
			c.revisions[i].alive = false
		}
	}
	if r.listed = c.listed; !c.unjudged() {
		r.over = c.listed
	}
	if c.deployment {
		copied := maps.Clone(r.copied)
		if copied == nil {
			copied = Managed{}
		}
		maps.Copy(copied, c.managed.only(Record, LastReload, Dummy))
		r.copied = copied
	}
}

// stuck says of which images the pods do not start.
func stuck(image int) bool { return image%2 == 1 }

// settle is the loop until it has nothing to do.
func (c *cell) settle() {
	for range 5 {
		view := c.view(c.same())
		if view.Excluded || !view.Intent.Asked {
			return
		}
		known := view.Known()
		in := policy.Input{
			Namespace: "test", Intent: view.Intent, Required: view.Required, Known: known, Current: c.inputs().States, Ring: rings[c.ring],
		}
		a := policy.Assess(in)
		w := c.same()
		switch {
		case a.Verdict.Action == policy.Reload:
			w.managed[Dummy] = digest.Bind(c.hash(), c.generation)
		case len(a.Verdict.Adopt) > 0:
			rec, err := a.Adopt(in, c.managed[Hash])
			if err != nil {
				c.fail("%v", err)
				return
			}
			w.managed[Record] = rec.String()
		default:
			return
		}
		if c.direct && w.managed[Dummy] != "" {
			c.writeDirectly()
			continue
		}
		if !c.land(w) {
			c.fail("the webhook rejects the loop")
			return
		}
		if c.away && c.managed[Dummy] != "" {
			c.writeDirectly()
		}
	}
	c.fail("the loop does not come to rest")
}

// hash returns the digest that a client computes.
func (c *cell) hash() string {
	newest, _ := rings[c.ring].Newest()
	hash, err := digest.Hash(newest.ID, digest.Subset(c.inputs().States, c.view(c.same()).Intent.Refs()))
	if err != nil {
		panic(err)
	}
	return hash
}

// due reports whether the pods of a revision have to be restarted: a listed object has another content than they started
// with. held reports that they must not be, since an object that they require is gone.
func (c *cell) due(r revision) (due, held bool) {
	for i := range objects {
		if !c.listed[i] || r.started[i] == c.contents[i] {
			continue
		}
		due = true
		held = held || c.required[i] && c.contents[i] == absent
	}
	return due && !held, held
}

func (c *cell) fail(format string, values ...any) {
	if c.broken == "" {
		c.broken = fmt.Sprintf(format, values...)
	}
}
