package oracle

import (
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// The oracle knows the graph of custom resources that package act makes: proxies refer to filters, filters to a Secret that must
// exist and to a ConfigMap that may be absent. A custom resource is to a workload as a config object is: it has a content, which is
// all the specs and contents below it, as of the last moment at which all of it was ready. While it is held nothing may restart
// because of it.

const (
	filters, proxies = "filters", "proxies"
	// graphGroup is their API group.
	graphGroup = "proxy.example.com"
	// referentList is the annotation on workloads, checksumAnnotation the one on proxies.
	referentList       = "referents"
	checksumAnnotation = "referent-checksum"
)

func isReferent(plural string) bool { return plural == filters || plural == proxies }

// graph is what is known of custom resources.
type graph struct {
	// objects are those that exist, nodes all that ever did.
	objects map[id]world.Object
	nodes   map[id]*referent
	// leaves are the config objects that a custom resource refers to, or once did.
	leaves map[id]bool
}

func newGraph() graph {
	return graph{objects: map[id]world.Object{}, nodes: map[id]*referent{}, leaves: map[id]bool{}}
}

// referent is one custom resource, with all that is below it.
type referent struct {
	// state is a text for all specs, contents and conditions.
	state string
	// held says why it is held; empty if it is not.
	held string
	// below is the content without the object's own spec, belowText a text for it.
	below     int
	belowText string
	// moved is when state changed, movedBelow when belowText did, holds when held did.
	moved      []versionTime
	movedBelow time.Time
	holds      []hold
}

// hold is a moment from which on a custom resource is held, or not any more.
type hold struct {
	versionTime

	is bool
}

// seenSince reports whether it was not held for so long, since a version, that the program has surely read it.
func (n *referent) seenSince(version int64, now time.Time) bool {
	for i, h := range n.holds {
		until := versionTime{now, 1 << 62}
		if i+1 < len(n.holds) {
			until = n.holds[i+1].versionTime
		}
		if !h.is && until.version > version && until.at.Sub(h.at) >= chance && h.version >= version {
			return true
		}
	}
	return false
}

// heldWithin reports whether it was held at some time with from ≤ version ≤ to.
func (n *referent) heldWithin(from, to int64) bool {
	if n == nil {
		return true // it does not exist
	}
	before := sort.Search(len(n.holds), func(i int) bool { return n.holds[i].version > from })
	if before == 0 || n.holds[before-1].is {
		return true
	}
	for _, h := range n.holds[before:] {
		if h.version <= to && h.is {
			return true
		}
	}
	return false
}

// movedWithin reports whether something in it changed with from < version ≤ to.
func (n *referent) movedWithin(from, to int64) bool {
	if n == nil {
		return false
	}
	i := sort.Search(len(n.moved), func(i int) bool { return n.moved[i].version > from })
	return i < len(n.moved) && n.moved[i].version <= to
}

// referents reads the annotation of a workload. What is not in the graph is left out.
func referents(annotations world.Object, prefix string) []ref {
	var refs []ref
	for _, item := range world.Items(world.Text(annotations, prefix+referentList)) {
		if r, ok := referentOf(item); ok {
			refs = append(refs, r)
		}
	}
	return refs
}

// referentOf reads e.g. "proxies.proxy.example.com/edge".
func referentOf(item string) (ref, bool) {
	kind, name, _ := strings.Cut(item, "/")
	plural, group, _ := strings.Cut(kind, ".")
	return ref{plural, name}, isReferent(plural) && group == graphGroup && name != ""
}

// commitReferent records a stored change of a custom resource.
func (l *ledger) commitReferent(c world.Commit) {
	key := idOf(c.Key)
	if c.New == nil {
		delete(l.graph.objects, key)
	} else {
		l.graph.objects[key] = c.New
	}
	if l.graph.nodes[key] == nil {
		l.graph.nodes[key] = &referent{}
	}
	if !l.isProgram(c.Call) {
		l.disturbed = c.At
	}
	l.regraph(c)
}

// regraph looks at all custom resources of the namespace of a change.
func (l *ledger) regraph(c world.Commit) {
	if len(l.graph.nodes) == 0 {
		return
	}
	for _, key := range l.graph.keys() {
		if key.namespace == c.Key.Namespace {
			l.revalue(key, c)
		}
	}
}

// keys returns those of all custom resources, sorted.
func (g *graph) keys() []id {
	return slices.SortedFunc(maps.Keys(g.nodes), func(a, b id) int { return strings.Compare(a.String(), b.String()) })
}

// revalue finds out what a custom resource is now.
func (l *ledger) revalue(key id, c world.Commit) {
	n, now := l.graph.nodes[key], versionTime{c.At, c.Version}
	var v valuation
	l.value(key, &v)
	state := v.content.String() + "\n" + v.held
	if state == n.state {
		return
	}
	n.state = state
	n.moved = append(n.moved, now)
	freed := n.held != "" && v.held == ""
	if was := n.held != "" || len(n.holds) == 0; was != (v.held != "") {
		n.holds = append(n.holds, hold{now, v.held != ""})
	}
	n.held = v.held
	if below := v.below(); below != n.belowText {
		n.belowText, n.movedBelow = below, c.At
	}
	l.recontent(key, &v, now)
	for _, w := range l.all {
		if w.gone || !w.lists(key) {
			continue
		}
		r := ref{key.plural, key.name}
		if freed && !n.seenSince(w.knownSince(r), c.At) {
			w.adopt(c.Version, c.Version, c.At, r).precise = true
		}
		l.readDue(w, c.At)
	}
}

// recontent records what a custom resource has below it. While it is held, the content stays what it was.
func (l *configLog) recontent(key id, v *valuation, now versionTime) {
	h := l.contents.histories[key]
	if h == nil {
		h = &history{}
		l.contents.histories[key] = h
	}
	h.touched = append(h.touched, now)
	if v.held != "" {
		l.count("graph held: " + v.held)
		return
	}
	before := h.now()
	l.graph.nodes[key].below = l.contents.numberOf("below " + v.below())
	if content := l.contents.numberOf(v.content.String()); content != before {
		h.edits = append(h.edits, edit{now.version, now.at, content})
		l.count("graph changes")
	}
}

// gathers is how long changes below a custom resource gather before the program looks at them: 100 ms, and as long again until it
// has read the config objects among them.
const gathers = 200 * time.Millisecond

// lasting returns the edits of an object that had a content before, but for those that were undone before the program surely looked: it
// evaluates what has gathered below a custom resource, reads a config object again that is said to be deleted, and finds no change.
func lasting(r ref, before int, edits []edit) []edit {
	var left []edit
	for i := 0; i < len(edits); i++ {
		undone := i
		for j := i + 1; j < len(edits) && edits[j].at.Sub(edits[i].at) <= looksWithin(r, edits[i]); j++ {
			if edits[j].content == before {
				undone = j
			}
		}
		if undone == i {
			left, before = append(left, edits[i]), edits[i].content
		}
		i = undone
	}
	return left
}

// looksWithin returns how long it may take until the program looks at an edit.
func looksWithin(r ref, e edit) time.Duration {
	switch {
	case isReferent(r.plural):
		return gathers
	case e.content == absent:
		return slowAfter
	default:
		return 0
	}
}

// knownSince returns the version since which the program may know what the pods run with of an object; before, it did not track it,
// or had lost what it knew.
func (w *workload) knownSince(r ref) int64 {
	since := w.tracked[r]
	for _, a := range w.adoptions {
		if a.covers(r) {
			since = max(since, a.version)
		}
	}
	return since
}

// valuation is what is found below a custom resource.
type valuation struct {
	content strings.Builder
	// own is the length of the first object's own part in content.
	own  int
	held string
}

func (v *valuation) below() string { return v.content.String()[v.own:] }

func (v *valuation) hold(why string) {
	if v.held == "" {
		v.held = why
	}
}

// value adds a custom resource and all that is below it.
func (l *configLog) value(key id, v *valuation) {
	object := l.graph.objects[key]
	if object == nil {
		v.content.WriteString(key.String() + " missing\n")
		v.hold("missing")
		return
	}
	spec := world.Section(object, "spec")
	encoded, _ := json.Marshal(spec) // decoded JSON can be encoded
	v.content.WriteString(key.String() + " " + string(encoded) + "\n")
	if v.own == 0 {
		v.own = v.content.Len()
	}
	if !isReady(object) {
		v.hold("not ready")
	}
	for _, name := range referredTo(spec) {
		l.value(id{filters, key.namespace, name}, v)
	}
	secret, config := world.Text(world.Section(spec, "secretRef"), "name"), world.Text(world.Section(spec, "configRef"), "name")
	if secret != "" && !l.options.Hidden.fromAll(secretList) {
		leaf := id{secretList, key.namespace, secret}
		l.graph.leaves[leaf] = true
		content := l.contents.histories[leaf].now()
		if content == absent {
			v.hold("Secret missing")
		}
		v.content.WriteString("secret " + secret + " " + strconv.Itoa(content) + "\n")
	}
	if config != "" {
		leaf := id{configMapList, key.namespace, config}
		l.graph.leaves[leaf] = true
		content := l.contents.histories[leaf].now()
		v.content.WriteString("configmap " + config + " " + strconv.Itoa(content) + "\n")
	}
}

// referredTo returns the filters of a proxy, each once, sorted.
func referredTo(spec world.Object) []string {
	var all []string
	for _, item := range world.Objects(spec, "filterRefs") {
		all = append(all, world.Text(item, "name"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isReady reports whether the operator has seen the present spec and says that it is valid.
func isReady(object world.Object) bool {
	generation, _ := numberOf(world.Section(object, "metadata")["generation"])
	observed, _ := numberOf(world.Section(object, "status")["observedGeneration"])
	if observed < generation {
		return false
	}
	of, said := numberOf(world.Condition(object, "Ready")["observedGeneration"])
	return world.IsTrue(object, "Ready") && (!said || of >= generation)
}

// referentHeld reports whether an object that a workload tracks is a custom resource that is held.
func (l *configLog) referentHeld(w *workload, r ref) bool {
	if !isReferent(r.plural) {
		return false
	}
	n := l.graph.nodes[id{r.plural, w.id.namespace, r.name}]
	return n == nil || n.held != ""
}

// carry notes for the custom resources of a workload that were, or may have been, held when a stamp was made: the program goes on
// with what it knew earlier, by the stamp before or by what it has adopted since.
func (l *ledger) carry(w *workload, s *stamp) {
	previous := w.last()
	for _, r := range w.refs {
		if !isReferent(r.plural) || previous == nil || !l.mayHold(w, s, r) {
			continue
		}
		if s.carried == nil {
			s.carried = map[ref][]*period{}
		}
		s.carried[r] = w.knowledge(previous, r)
	}
}

// mayHold reports whether a custom resource was, or may have been, held when a stamp was made.
func (l *configLog) mayHold(w *workload, s *stamp, r ref) bool {
	n := l.graph.nodes[id{r.plural, w.id.namespace, r.name}]
	from := l.versionAt(s.arrivedAt.Add(-readBefore))
	return n.heldWithin(from, s.version) || n.movedWithin(from, s.version) || !l.healthy(w, s.arrivedAt.Add(-readBefore))
}
