package chain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// graphState is what questions are answered from. Its own methods are safe for concurrent use, but for those of the evaluator; those of
// its parts need mu. The evaluator alone writes what mu protects, the history excepted: so it reads without a lock.
type graphState struct {
	ring func() digest.Ring
	now  func() time.Time

	mu sync.RWMutex
	configuration
	graph   *referent.Graph
	history history
	// evaluations counts evaluated nodes, since the start.
	evaluations int
	// outdated are the config objects that are to be read, or are being read: the graph may have an older content of them.
	outdated map[referent.Key]struct{}
}

// configure puts a schema in force, which has no graph yet. The same one again leaves everything as it is. It reports whether it is
// the first one. The evaluator calls it.
func (a *graphState) configure(schema *referent.Schema, same bool) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first = !a.configured
	a.configured = true
	if !same {
		a.schema, a.graph = schema, nil
		a.history.clear()
	}
	return first
}

// evaluate applies changes to a graph, evaluates it and puts it in force. The evaluator calls it.
func (a *graphState) evaluate(graph *referent.Graph, changes []change, changedSources func(graph *referent.Graph, held map[referent.Key]time.Time) []referent.Change) (
	changed []referent.Change, unread []referent.Key,
) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, change := range changes {
		change.apply(graph, a.history.refused)
	}
	done := graph.Evaluate()
	a.evaluations += done.Evaluated
	if graph != a.graph { // one that was never evaluated would answer wrong
		a.graph = graph
		a.history.begin()
	}
	return append(done.Changes, changedSources(graph, a.history.held)...), graph.UnreadConfig()
}

// record adds to the history.
func (a *graphState) record(changes []referent.Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history.add(a.graph, changes, a.ring().Keys(), a.now())
}

func (a *graphState) isHeld(key referent.Key) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	_, held := a.history.held[key]
	return held
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

// state returns the state of a custom resource, and its key; the key is empty where the configuration does not have it. unseen: it is
// held, and since when is not recorded. Nothing is kept of the question: anyone can ask the webhook about any name.
func (a *graphState) state(namespace string, ref reference.Ref) (state digest.State, key referent.Key, unseen bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.stateLocked(namespace, ref)
}

func (a *graphState) stateLocked(namespace string, ref reference.Ref) (state digest.State, key referent.Key, unseen bool) {
	key, known := a.key(namespace, ref)
	if !known {
		return a.unknownState(ref.Kind, a.now()), referent.Key{}, false
	}
	if a.graph == nil {
		return unread("no digest key is loaded yet", a.now()), key, false
	}
	state, hold := a.graph.State(key)
	if hold == nil {
		state.Steps = a.history.tracked[key].list
		return state, key, false
	}
	since, recorded := a.history.held[key]
	if !recorded {
		since = a.now()
	}
	return a.history.heldBy(hold, key, since), key, !recorded
}

// Check says why the objects of a resource cannot be tracked; nil if they can, and before the configuration has been read.
func (a *graphState) Check(kind reference.Kind) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if _, ok := a.schema.Resource(kind.GroupResource()); ok || !a.configured {
		return nil
	}
	return errors.New(a.unknown(kind))
}

// ClusterScoped reports whether the configuration has a resource whose objects have no namespace.
func (a *graphState) ClusterScoped(kind reference.Kind) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	resource, ok := a.schema.Resource(kind.GroupResource())
	return ok && resource.ClusterScoped
}

// setOutdated takes in which config objects are to be read. The evaluator calls it.
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

// Exists reports whether there is an object of a custom resource, as far as the watches have delivered it. Before they have, or
// where they may not, what is recorded is tracked and held; anything else is reported when it is delivered.
func (a *graphState) Exists(namespace string, ref reference.Ref) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	key, ok := a.key(namespace, ref)
	return ok && a.graph != nil && a.graph.Exists(key)
}

// referred returns the objects in the graph that others refer to.
func (a *graphState) referred() []referent.Key {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.graph == nil {
		return nil
	}
	return a.graph.Referred()
}

// Path returns the objects that lead up to a custom resource that a workload of a namespace tracks. It begins with the cause and
// ends with the resource. The cause is an object, as Because of a State names it; the empty one is what the resource is held for.
// Path returns nil if the cause is not below the resource, or is the resource itself.
func (a *graphState) Path(namespace string, ref reference.Ref, cause string) []string {
	keys := a.path(namespace, ref, cause)
	if len(keys) < 2 {
		return nil
	}
	path := make([]string, 0, len(keys))
	for _, key := range slices.Backward(keys) {
		path = append(path, key.In(namespace))
	}
	return path
}

// path returns the keys that lead from the resource down to the cause.
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

// Picture shows the graph below some objects, as they are written in an annotation of a namespace; without objects, all of it. The
// graph must have one of them.
func (a *graphState) Picture(namespace string, objects ...string) (referent.Picture, error) {
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
