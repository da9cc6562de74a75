package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/apianswer"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/recovering"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// maxLiveReads is how many objects are read live for one question. Beyond, the graph answers.
	maxLiveReads = 50
	// freshInFlight bounds the reads of one question at a time.
	freshInFlight = 16
)

// liveReader reads custom resources live, for one part of the program.
type liveReader struct {
	objects
	graphState *graphState
	inbox      *inbox
	namespaces namespaces
	log        logr.Logger
}

// configReader reads ConfigMaps and Secrets live.
type configReader interface {
	ReadLive(ctx context.Context, namespace string, refs []reference.Ref) (map[reference.Ref]digest.State, error)
}

// read reads config objects of a namespace. Custom resources have half of the time that is left: where their API does not answer, the
// graph does, and the others can be read still.
func (l *liveReader) read(
	ctx context.Context, config configReader, namespace string, refs []reference.Ref,
) (map[reference.Ref]digest.State, error) {
	others, custom := splitCustom(refs)
	if len(custom) == 0 {
		return config.ReadLive(ctx, namespace, others)
	}
	half, cancel := halfDeadline(ctx)
	defer cancel()
	states := l.readCustom(half, config, namespace, custom)
	if len(others) == 0 {
		return states, nil
	}
	read, err := config.ReadLive(ctx, namespace, others)
	maps.Copy(states, read)
	return states, err
}

// halfDeadline returns a context with half of the time that another one has left; without a deadline where that has none.
func halfDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// readCustom returns the states of custom resources that a workload of a namespace tracks, with everything below them as the API server
// has it now. Which objects refer to one is known from the watches. Where that is too much to read, or something cannot be read, the graph
// answers, which is mostly as current as the watches. Where it is not, the states say that they are not verified: a read may be
// outstanding, whatever the reason is that the graph answers.
func (l *liveReader) readCustom(
	ctx context.Context, config configReader, namespace string, refs []reference.Ref,
) map[reference.Ref]digest.State {
	states := make(map[reference.Ref]digest.State, len(refs))
	if l.client != nil {
		l.inbox.applyPending(ctx)
	}
	for _, ref := range refs {
		states[ref], _, _ = l.graphState.state(namespace, ref)
	}
	l.inbox.retry(l.graphState.refusedBelow(namespace, refs))
	f, err := l.begin(config, namespace, refs)
	if err == nil {
		err = f.follow(ctx)
	}
	if err != nil {
		recovering.Log(l.log, err)
		l.log.V(1).Info("cannot read custom resources live; using the watched state", "namespace", namespace, "error", err.Error())
		return l.graphState.unverified(namespace, refs, err)
	}
	for _, ref := range refs {
		if key, ok := f.roots[ref]; ok {
			states[ref] = f.state(key, states[ref])
		}
	}
	return states
}

// liveRead is a graph for one question.
type liveRead struct {
	*liveReader
	config configReader
	graph  *referent.Graph
	roots  map[reference.Ref]referent.Key
	// wanted are to be read, seen were.
	wanted []referent.Key
	seen   map[referent.Key]struct{}
	// found are the custom resources that were read, states the config objects, by namespace.
	found  []liveObject
	states map[string]map[reference.Ref]digest.State
}

var (
	errNoGraph = errors.New("there is no graph yet")
	errTooMany = errors.New("too many objects to read")
)

// begin begins with what the graph knows to be below the roots. The error says why the graph has to answer.
func (l *liveReader) begin(config configReader, namespace string, refs []reference.Ref) (*liveRead, error) {
	l.graphState.mu.RLock()
	defer l.graphState.mu.RUnlock()
	if l.graphState.graph == nil {
		return nil, errNoGraph
	}
	graph, err := l.graphState.graph.NewEmpty(l.graphState.ring())
	if err != nil {
		return nil, err
	}
	f := &liveRead{
		liveReader: l, config: config, graph: graph, roots: map[reference.Ref]referent.Key{}, seen: map[referent.Key]struct{}{},
		states: map[string]map[reference.Ref]digest.State{},
	}
	for _, ref := range refs {
		if key, ok := l.graphState.key(namespace, ref); ok {
			f.roots[ref] = key
			f.wanted = append(f.wanted, key)
		}
	}
	return f, f.addKnown()
}

// follow reads until nothing is referred to that was not read.
func (f *liveRead) follow(ctx context.Context) error {
	for range referent.MaxDepth + 2 {
		var custom []referent.Key
		config := map[string][]reference.Ref{}
		for _, key := range f.wanted {
			if _, ok := f.seen[key]; ok {
				continue
			}
			f.seen[key] = struct{}{}
			if ref, ok := key.Ref(); ok {
				config[key.Namespace] = append(config[key.Namespace], ref)
			} else {
				custom = append(custom, key)
			}
		}
		if len(custom)+len(config) == 0 {
			return nil
		}
		if len(f.seen) > maxLiveReads {
			return errTooMany
		}
		if err := f.readAll(ctx, custom, config); err != nil {
			return err
		}
		f.graph.Evaluate()
		if err := f.next(); err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d rounds of reads", referent.MaxDepth+2)
}

// next wants what is below the roots and was not read. A config object that was read before something referred to it is read
// again.
func (f *liveRead) next() error {
	for _, key := range f.graph.UnreadConfig() {
		delete(f.seen, key)
	}
	f.wanted = f.graph.Below(slices.Collect(maps.Values(f.roots))...)
	f.graphState.mu.RLock()
	defer f.graphState.mu.RUnlock()
	if f.graphState.graph == nil {
		return errNoGraph
	}
	return f.addKnown()
}

// addKnown wants what the watches know to be below the objects that are wanted for the first time: which other objects refer to them, only
// the watches know. There must be a graph, and mu must be locked.
func (f *liveRead) addKnown() error {
	isSeen := func(key referent.Key) bool {
		_, ok := f.seen[key]
		return ok
	}
	unseen := slices.DeleteFunc(slices.Clone(f.wanted), isSeen)
	below, few := f.graphState.graph.FewBelow(maxLiveReads, unseen...)
	if !few {
		return errTooMany
	}
	f.wanted = append(f.wanted, below...)
	return nil
}

// readAll reads everything at the same time. Custom resources are set first: the graph takes only config objects that something
// refers to.
func (f *liveRead) readAll(ctx context.Context, custom []referent.Key, config map[string][]reference.Ref) error {
	var group errgroup.Group
	group.SetLimit(freshInFlight)
	found := make([]liveObject, len(custom))
	for i, key := range custom {
		group.Go(recovering.Func(func() (err error) {
			found[i], err = f.object(ctx, key)
			return err
		}))
	}
	namespaces := slices.Sorted(maps.Keys(config))
	states := make([]map[reference.Ref]digest.State, len(namespaces))
	for i, namespace := range namespaces {
		if f.namespaces.outside(namespace) {
			continue
		}
		group.Go(recovering.Func(func() (err error) {
			states[i], err = f.config.ReadLive(ctx, namespace, config[namespace])
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, one := range found {
		if one.object == nil {
			f.graph.Delete(one.key)
		} else {
			f.graph.Put(one.object)
		}
	}
	f.found = append(f.found, found...)
	for i, namespace := range namespaces {
		f.setConfig(namespace, config[namespace], states[i])
	}
	return nil
}

// object reads a custom resource.
func (l *liveReader) object(ctx context.Context, key referent.Key) (liveObject, error) {
	resource, ok := l.graphState.resource(key)
	if !ok || !resource.ClusterScoped && l.namespaces.outside(key.Namespace) {
		return liveObject{key: key}, nil // the configuration has changed, or the namespace is not watched, which the sources of the graph say
	}
	object, err := l.get(ctx, resource, key)
	if err != nil && !apianswer.NotFound(err) {
		return liveObject{}, fmt.Errorf("read %s: %w", key, err)
	}
	return object, nil
}

func (f *liveRead) setConfig(namespace string, refs []reference.Ref, states map[reference.Ref]digest.State) {
	if f.namespaces.outside(namespace) {
		for _, ref := range refs {
			f.graph.SetForbidden(namespace, ref, notWatched)
		}
	}
	for ref, state := range states {
		f.graph.SetConfig(namespace, ref, state)
	}
	if f.states[namespace] == nil {
		f.states[namespace] = map[reference.Ref]digest.State{}
	}
	maps.Copy(f.states[namespace], states)
}

// state is the answer about a root. What led to it, and since when it is held, the graph of the watches knows, if it is as far.
func (f *liveRead) state(key referent.Key, known digest.State) digest.State {
	state, hold := f.graph.State(key)
	if hold == nil {
		state.Steps = known.Steps
		return state
	}
	since := f.graphState.now()
	if known.Hold != nil {
		since = known.Hold.Since
	}
	f.graphState.mu.RLock()
	defer f.graphState.mu.RUnlock()
	return f.graphState.history.heldBy(hold, key, since)
}

// objects reads custom resources live.
type objects struct {
	client dynamic.Interface
	// limit bounds the reads in flight.
	limit *fairlimit.Limit
	// large bounds those of large objects, until what counts of one is read.
	large largeread.Limit
	// refused is called where the API server refuses a read.
	refused func(referent.Key)
}

// get returns what counts of an object. It has the key also where there is none, which is an error.
func (o objects) get(ctx context.Context, resource *referent.Resource, key referent.Key) (liveObject, error) {
	found := liveObject{key: key}
	release, err := o.limit.Acquire(ctx, key.Namespace, 1)
	if err != nil {
		return found, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	ctx, done := o.large.Begin(ctx, key.Namespace)
	defer done()
	object, err := objectsOf(o.client, resource, key.Namespace).Get(largeread.Admit(ctx), key.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		o.refused(key)
	}
	if err == nil {
		found.object, found.uid, found.version = resource.Read(object), object.GetUID(), object.GetResourceVersion()
	}
	return found, err
}

// objectsOf are those of a resource in a namespace; the empty one is that of objects in none.
func objectsOf(client dynamic.Interface, resource *referent.Resource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return client.Resource(resource.GVR)
	}
	return client.Resource(resource.GVR).Namespace(namespace)
}
