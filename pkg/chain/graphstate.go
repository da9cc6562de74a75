package chain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// graphState is what questions are answered from. Its methods are safe for concurrent use, but for those of the goroutine of Start. That
// one alone writes what mu protects, held excepted: so it reads without a lock.
type graphState struct {
	ring func() digest.Ring
	now  func() time.Time
	// rules say which workloads run with which custom resources; nil until a configuration has been read. They are in force
	// before the graph is.
	rules    atomic.Pointer[referent.Schema]
	rejected atomic.Bool // there is no valid configuration to wait for

	mu         sync.RWMutex
	configured bool
	began      time.Time
	schema     *referent.Schema
	graph      *referent.Graph
	// evaluations counts evaluated nodes, since the start.
	evaluations int
	// held is since when nodes are held. Questions add to it.
	held map[referent.Key]time.Time
	// refused are what the API server has refused.
	refused refusals
	// outdated are the config objects that are to be read, or are being read: the graph may have an older content of them.
	outdated map[referent.Key]struct{}
	// tracked has the latest changes of custom resources.
	tracked map[referent.Key]steps
	// prunedAt is when the program last dropped entries of held, refused and tracked for objects that are in no graph.
	prunedAt time.Time
}

// configure puts a schema in force, which has no graph yet. The same one again leaves everything as it is. It reports whether it is
// the first one. The goroutine of Start calls it.
func (a *graphState) configure(schema *referent.Schema, same bool) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first = !a.configured
	a.configured = true
	if !same {
		a.schema, a.graph, a.held, a.tracked, a.refused = schema, nil, nil, nil, refusals{}
	}
	return first
}

// evaluate applies changes to a graph, evaluates it and puts it in force. The goroutine of Start calls it.
func (a *graphState) evaluate(graph *referent.Graph, changes []change, changedSources func(graph *referent.Graph, held map[referent.Key]time.Time) []referent.Change) (
	changed []referent.Change, unread []referent.Key,
) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, change := range changes {
		change.apply(a, graph)
	}
	done := graph.Evaluate()
	a.evaluations += done.Evaluated
	a.enforce(graph)
	return append(done.Changes, changedSources(graph, a.held)...), graph.UnreadConfig()
}

// enforce has questions answered from a graph, which was evaluated. Of one that was never evaluated the answers would be wrong.
func (a *graphState) enforce(graph *referent.Graph) {
	if graph == a.graph {
		return
	}
	a.graph, a.tracked = graph, map[referent.Key]steps{}
	if a.held == nil {
		a.held = map[referent.Key]time.Time{} // under other keys, the same objects are held
	}
}

// concerns reports whether a config object is part of the graph, or is to be read, or is being read: what a read has found before a change
// counts when it ends, if something refers to the object by then.
func (a *graphState) concerns(namespace string, ref reference.Ref) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.graph != nil && (a.graph.Refers(namespace, ref) || a.isOutdated(referent.ConfigKey(namespace, ref)))
}

// resource returns that of an object, if the configuration has it.
func (a *graphState) resource(key referent.Key) (*referent.Resource, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.schema.Resource(key.GroupResource())
}

// key returns that of a custom resource; false where the configuration does not have it. mu must be locked.
func (a *graphState) key(namespace string, ref reference.Ref) (referent.Key, bool) {
	resource, ok := a.schema.Resource(ref.Kind.GroupResource())
	if !ok {
		return referent.Key{}, false
	}
	return resource.Key(namespace, ref.Name), true
}

// state returns the state of a custom resource, and its key; the key is empty where the configuration does not have it. unseen: it is
// held, and since when is not recorded. Nothing is kept of the question: anyone can ask the webhook about any name.
func (a *graphState) state(namespace string, ref reference.Ref) (state digest.State, key referent.Key, unseen bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.stateLocked(namespace, ref)
}

func (a *graphState) stateLocked(namespace string, ref reference.Ref) (state digest.State, key referent.Key, unseen bool) {
	resource, ok := a.schema.Resource(ref.Kind.GroupResource())
	switch {
	case !a.configured && a.rejected.Load():
		return held("the configuration of --config is missing or not valid: its Event and the log say why", a.began), referent.Key{}, false
	case !a.configured:
		return unread("the configuration has not been read yet", a.began), referent.Key{}, false
	case !ok && a.awaits(ref.Kind):
		return unread("its configuration is not in force yet", a.now()), referent.Key{}, false
	case !ok:
		return held(a.unknown(ref.Kind), time.Time{}), referent.Key{}, false
	}
	key = resource.Key(namespace, ref.Name)
	if a.graph == nil {
		return unread("no digest key is loaded yet", a.now()), key, false
	}
	state, hold := a.graph.State(key)
	if hold == nil {
		state.Steps = a.tracked[key].list
		return state, key, false
	}
	since, recorded := a.held[key]
	if !recorded {
		since = a.now()
	}
	return a.heldBy(hold, key, since), key, !recorded
}

func held(reason string, since time.Time) digest.State {
	return digest.State{Hold: &digest.Hold{Reason: reason, Since: since}}
}

// unread is held by what this process has not read yet.
func unread(reason string, since time.Time) digest.State {
	return digest.State{Hold: &digest.Hold{Reason: reason, Since: since, NotReadYet: true}}
}

// heldBy is the state of a node that a graph holds. mu must be locked.
func (a *graphState) heldBy(hold *referent.Hold, key referent.Key, since time.Time) digest.State {
	if hold.Reason == referent.Unsynced {
		return unread(describe(hold, key), since)
	}
	state := held(describe(hold, key), since)
	state.Hold.Forbidden, state.Hold.Refused = hold.Reason == referent.Forbidden, a.refused.at(hold)
	return state
}

// describe says why a node is held, and which node below it is the cause.
func describe(hold *referent.Hold, key referent.Key) string {
	if hold.Node == key {
		if hold.Detail == "" {
			return string(hold.Reason)
		}
		return string(hold.Reason) + ": " + hold.Detail
	}
	text := hold.Node.In(key.Namespace) + " is " + string(hold.Reason)
	if hold.Detail != "" {
		text += ": " + hold.Detail
	}
	return text
}

// check says why the objects of a resource cannot be tracked; nil if they can, and before the configuration has been read.
func (a *graphState) check(kind reference.Kind) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if _, ok := a.schema.Resource(kind.GroupResource()); ok || !a.configured {
		return nil
	}
	return errors.New(a.unknown(kind))
}

// awaits reports whether a resource is in the configuration, and not in the graph yet.
func (a *graphState) awaits(kind reference.Kind) bool {
	rules := a.rules.Load()
	if rules == nil {
		return false
	}
	_, ok := rules.Resource(kind.GroupResource())
	return ok
}

// unknown says that the configuration does not have a resource.
func (a *graphState) unknown(kind reference.Kind) string {
	text := "the referents of the configuration have no resource " + reference.Quote(string(kind))
	if known := a.schema.Resources(); len(known) > 0 {
		return text + ": they have " + reference.List(known, reference.MaxNamed)
	}
	return text
}

// setOutdated takes in which config objects are to be read. The goroutine of Start calls it.
func (a *graphState) setOutdated(outdated map[referent.Key]struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outdated = outdated
}

// unverified returns the states of custom resources that a workload of a namespace tracks, as the graph has them, and marks those below
// which it may have an older content than the watches know of. State and mark are of the same moment: a state from before a read has
// ended must not count as verified because it has.
func (a *graphState) unverified(namespace string, refs []reference.Ref, reason error) map[reference.Ref]digest.State {
	a.mu.RLock()
	defer a.mu.RUnlock()
	states := make(map[reference.Ref]digest.State, len(refs))
	of := make(map[referent.Key]reference.Ref, len(refs))
	for _, ref := range refs {
		state, key, _ := a.stateLocked(namespace, ref)
		if states[ref] = state; state.Hold == nil {
			of[key] = ref
		}
	}
	if len(a.outdated) == 0 || len(of) == 0 {
		return states
	}
	for _, key := range a.graph.LeadingTo(a.isOutdated, slices.Collect(maps.Keys(of))...) {
		state := states[of[key]]
		state.Unverified = reason.Error()
		states[of[key]] = state
	}
	return states
}

func (a *graphState) isOutdated(key referent.Key) bool {
	_, outdated := a.outdated[key]
	return outdated
}

// exists reports whether there is an object of a custom resource, as far as the watches have delivered it.
func (a *graphState) exists(namespace string, ref reference.Ref) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	key, ok := a.key(namespace, ref)
	return ok && a.graph != nil && a.graph.Exists(key)
}

// configObjects returns the config objects in the graph.
func (a *graphState) configObjects() []referent.Key {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.graph == nil {
		return nil
	}
	return a.graph.ConfigObjects()
}

// path returns the keys that lead from a custom resource down to a cause, which is named as a State names it; nil if the cause is not
// below it. The empty cause is what the resource is held for.
func (a *graphState) path(namespace string, ref reference.Ref, cause string) []referent.Key {
	a.mu.RLock()
	defer a.mu.RUnlock()
	root, ok := a.key(namespace, ref)
	if !ok || a.graph == nil {
		return nil
	}
	if cause == "" {
		return a.graph.PathToCause(root)
	}
	for _, key := range a.graph.Below(root) {
		if key.Word(root.Namespace) == cause {
			return a.graph.Path(root, key)
		}
	}
	return nil
}

// picture shows the graph below some objects, of which it must have one; without objects, all of it.
func (a *graphState) picture(namespace string, objects []string) (referent.Picture, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var roots []referent.Key
	for _, object := range objects {
		root, err := a.schema.ParseKey(namespace, object)
		if err != nil {
			return referent.Picture{}, err
		}
		roots = append(roots, root)
	}
	if a.graph == nil {
		return referent.Picture{}, nil
	}
	if len(roots) > 0 && !slices.ContainsFunc(roots, a.graph.Has) {
		return referent.Picture{}, fmt.Errorf("%s: %s", roots[0].In(""), describe(a.graph.Hold(roots[0]), roots[0]))
	}
	return a.graph.Picture(roots...), nil
}
