package chain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/backoff"
	"github.com/pod-reloader/pod-reloader/pkg/fairlimit"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	defaultFieldOwner = "pod-reloader-referents"
	// writeLimit bounds one write.
	writeLimit = 10 * time.Second
	// batchLimit is after how long no further write of a batch begins: what has become due meanwhile may come before it.
	batchLimit = time.Second
	// scopeAgain is when a namespace is looked at again in which nothing is published.
	scopeAgain = time.Minute
	// contestAgain is when a digest that another writer has removed is restored. That is doubled each time, up to longestContest.
	contestAgain, longestContest = 10 * time.Second, 640 * time.Second
	// reportContest is how often it is restored before that is reported.
	reportContest = 3
)

// publisher writes the digests of custom resources into them, while this process leads. The evaluator alone uses it,
// but for the number of unpublished digests.
type publisher struct {
	client     dynamic.Interface
	fieldOwner string
	// publishes reports whether digests are written in a namespace.
	publishes  func(namespace string) bool
	now        func() time.Time
	log        logr.Logger
	inbox      *inbox
	graphState *graphState
	sources    *sources
	lifetime   *lifetime
	// writes bounds those in flight.
	writes *fairlimit.Limit
	// handlers are called for digests that cannot be written.
	handlers []func(Unpublished)

	leads context.Context // nil while this process does not lead
	sweep bool            // look at all publications
	// in has the publications by namespace.
	in        map[string]*publications
	contested contests
	// restoring are the objects that have come without the correct annotation, and when they are looked at once more.
	restoring map[referent.Key]time.Time
	// unpublished are the objects whose digest could not be written.
	unpublished unpublished
	// pace are the objects whose digest was written of late.
	pace    pace
	ignored ignored
	keys    keyReads
}

// publications are the writes to the objects of one namespace, one at a time.
type publications struct {
	// due are the objects whose annotation or ignored references are to be looked at.
	due map[referent.Key]struct{}
	// underWay are the objects of the writes that were begun together, until the last one has ended.
	underWay []referent.Key
	busy     bool
}

// waits reports whether an object is to be written, or is being written.
func (p *publications) waits(key referent.Key) bool {
	_, due := p.due[key]
	return due || slices.Contains(p.underWay, key)
}

// maxWrites is how many writes of a namespace follow each other before the graph is asked again: each of them waits for the
// others, and may be of an earlier state by then.
const maxWrites = 100

// take takes in whether this process leads, and which writes have ended.
func (u *publisher) take(p pending) {
	if p.leads != nil {
		u.leads, u.sweep = p.leads, true
	}
	if u.leads != nil && u.leads.Err() != nil {
		u.leads = nil
		u.clear()
	}
	u.finish(p.written)
	u.takeKeys(p)
	for _, batch := range p.published {
		at := u.of(batch.namespace)
		at.busy, at.underWay = false, nil
		for _, key := range batch.left {
			u.due(key)
		}
	}
}

// clear forgets what has happened to the digests, with the end of the leadership or of the configuration.
func (u *publisher) clear() {
	u.unpublished.clear()
	clear(u.contested)
	clear(u.restoring)
	clear(u.ignored.reported)
	clear(u.keys.unknown)
	u.keys.failures = 0
}

// publish writes the annotations of nodes that have changed, and of all nodes when this process begins to lead.
func (u *publisher) publish(p pending, changes []referent.Change) {
	if u.leads == nil {
		return
	}
	for _, change := range changes {
		u.due(change.Key)
		if !u.graphState.graph.Exists(change.Key) {
			delete(u.contested, change.Key)
			delete(u.restoring, change.Key)
		}
	}
	u.repeat(p)
	u.contest(u.restored(p.removed))
	u.restore(p.changes)
	for _, change := range p.changes {
		if o, ok := change.(objectChange); ok {
			u.reportIgnored(o.key)
		}
	}
	if u.sweep {
		u.sweep = false
		for key := range u.sources.keys {
			u.due(key)
			u.reportIgnored(key)
		}
	}
	for namespace, at := range u.in {
		u.next(namespace, at)
		if !at.busy && len(at.due) == 0 {
			delete(u.in, namespace)
		}
	}
}

// repeat marks the objects whose writes were put off, or have failed.
func (u *publisher) repeat(p pending) {
	for _, key := range p.paced {
		u.pace.ready(key, u.now())
		u.due(key)
	}
	for _, failed := range p.unpublished {
		for _, key := range failed.keys {
			if !u.unpublished.has(key) || u.unpublished.ready(key, failed.due) {
				u.due(key) // where the failure is forgotten, the namespace was out of scope meanwhile
			}
		}
	}
}

// restore looks once more, after a while, at the objects that have come without the correct annotation: another writer may have
// removed it. Where it does so again and again, each write waits twice as long as the one before: a writer that copies the annotation
// follows each of them.
func (u *publisher) restore(changes []change) {
	wrong := map[time.Duration][]referent.Key{}
	for _, change := range changes {
		if o, ok := change.(objectChange); ok && o.source.resource.Publish {
			_, due := u.graphState.graph.Publication(o.key)
			until, waits := u.restoring[o.key]
			switch {
			case !due:
			case !u.publishes(o.key.Namespace):
				u.due(o.key) // nothing was written, so that nothing was removed
			case waits && u.now().Before(until): // a writer that repeats itself is one writer
			default:
				wait := backoff.Doubled(contestAgain, longestContest, u.contested.times(o.key, u.now()))
				wrong[wait] = append(wrong[wait], o.key)
			}
		}
	}
	for wait, keys := range wrong {
		due := u.now().Add(wait)
		for _, key := range keys {
			u.restoring[key] = due
		}
		u.inbox.gatherAfter(wait, func(p *pending) { p.removed = append(p.removed, again{keys, due}) })
	}
}

// restored ends the wait of objects that have come without the correct annotation, and returns them.
func (u *publisher) restored(all []again) (keys []referent.Key) {
	for _, removed := range all {
		for _, key := range removed.keys {
			if due, ok := u.restoring[key]; ok && due.Equal(removed.due) {
				delete(u.restoring, key)
				keys = append(keys, key)
			}
		}
	}
	slices.SortFunc(keys, referent.Key.Compare)
	return keys
}

// contest marks the objects that are still without the correct annotation: another writer has removed it.
func (u *publisher) contest(removed []referent.Key) {
	for _, key := range removed {
		if _, due := u.graphState.graph.Publication(key); !due {
			delete(u.contested, key)
			continue
		}
		if !u.publishes(key.Namespace) {
			delete(u.contested, key)
			u.due(key) // when the namespace comes back into scope
			continue
		}
		if u.unpublished.has(key) {
			continue // it was not replaced: it could not be written
		}
		waits := u.of(key.Namespace).waits(key) || u.pace.writes(key).waiting
		u.due(key)
		if waits {
			continue // it was not replaced: it waits to be written
		}
		if u.contested.add(key, u.now()) == reportContest {
			u.log.Info("another writer replaces a published digest",
				"namespace", key.Namespace, "referent", key.String(), "remedy", "configure another annotation")
		}
	}
}

func (u *publisher) of(namespace string) *publications {
	at, ok := u.in[namespace]
	if !ok {
		at = &publications{due: map[referent.Key]struct{}{}}
		u.in[namespace] = at
	}
	return at
}

// due marks a node whose annotation is to be looked at.
func (u *publisher) due(key referent.Key) {
	if resource, ok := u.graphState.schema.Resource(key.GroupResource()); ok && resource.Publish {
		u.of(key.Namespace).due[key] = struct{}{}
	}
}

// next begins writes of a namespace, if some are due and none is under way: first those of objects whose last write has not failed, then
// the others, the earliest failure first.
func (u *publisher) next(namespace string, at *publications) {
	if at.busy {
		return
	}
	if len(at.due) > 0 && !u.publishes(namespace) {
		u.postpone(namespace, at)
		return
	}
	var writes []publication
	for _, key := range slices.SortedFunc(maps.Keys(at.due), u.unpublished.compare) {
		if len(writes) == maxWrites {
			break
		}
		delete(at.due, key)
		u.reportIgnored(key)
		if write, ok := u.publication(key); ok {
			writes = append(writes, write)
			at.underWay = append(at.underWay, key)
		}
	}
	if len(writes) == 0 {
		return
	}
	at.busy = true
	leads := u.leads
	u.lifetime.run(func(ctx context.Context) { u.writeAll(ctx, leads, namespace, writes) })
}

// batchEnd is the end of writes of a namespace that were begun together, and the objects that were left for the next batch.
type batchEnd struct {
	namespace string
	left      []referent.Key
}

// writeAll writes for batchLimit, or until one of the contexts ends: that of the configuration, which waits for it, and that of the
// leadership.
func (u *publisher) writeAll(ctx, leads context.Context, namespace string, writes []publication) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(leads, cancel)()
	var done []written
	batch := batchEnd{namespace: namespace}
	defer func() {
		u.inbox.arrive(func(p *pending) { p.published, p.written = append(p.published, batch), append(p.written, done...) })
	}()
	began := u.now()
	for _, write := range writes {
		if u.now().Sub(began) >= batchLimit {
			batch.left = append(batch.left, write.key)
			continue
		}
		err := u.write(ctx, write)
		switch end := (written{write, err}); {
		case ctx.Err() != nil:
			return // this process leads no more, or has another configuration
		case err != nil:
			u.inbox.arrive(func(p *pending) { p.written = append(p.written, end) }) // the others may take long
		default:
			done = append(done, end)
		}
	}
}

// postpone looks at a namespace again later: it may be in scope then. Until then, nothing of it has failed, and what is deleted is not
// due any more.
func (u *publisher) postpone(namespace string, at *publications) {
	u.unpublished.forgetAll(namespace)
	maps.DeleteFunc(at.due, func(key referent.Key, _ struct{}) bool { return !u.graphState.graph.Exists(key) })
	maps.DeleteFunc(u.keys.unknown, func(key referent.Key, _ unknownKey) bool { return !u.graphState.graph.Exists(key) })
	if len(at.due) == 0 {
		return
	}
	at.busy = true
	u.inbox.gatherAfter(scopeAgain, func(p *pending) { p.published = append(p.published, batchEnd{namespace: namespace}) })
}

// publication is one write.
type publication struct {
	key      referent.Key
	value    string
	resource *referent.Resource
	object   *unstructured.Unstructured
}

// publication returns the write for a node, if its annotation differs. The uid keeps server-side apply from creating an
// object that has been deleted meanwhile; the resourceVersion keeps a leader that was frozen from replacing the digest of the next one.
func (u *publisher) publication(key referent.Key) (publication, bool) {
	value, due := u.graphState.graph.Publication(key)
	resource, ok := u.graphState.schema.Resource(key.GroupResource())
	if !u.graphState.graph.Exists(key) || !due && u.graphState.graph.Hold(key) == nil {
		u.unpublished.forget(key) // it is gone, or has the correct annotation, or correctly none
	}
	if !due || !ok {
		delete(u.keys.unknown, key)
		return publication{}, false
	}
	if u.unpublished.waits(key, value) || !u.mayReplace(key) || u.mustWait(key) {
		return publication{}, false
	}
	object := u.sources.identified(key)
	if object == nil {
		u.due(key) // a watch that has taken the place of another one has not listed it yet
		return publication{}, false
	}
	if value != "" {
		object.SetAnnotations(map[string]string{resource.Annotation: value})
	}
	return publication{key, value, resource, object}, true
}

// mustWait reports whether a write has to wait because there were many before it. Then it is repeated.
func (u *publisher) mustWait(key referent.Key) bool {
	wait, back := u.pace.wait(key, u.now())
	if back {
		u.inbox.gatherAfter(wait, func(p *pending) { p.paced = append(p.paced, key) })
	}
	return wait > 0
}

func (u *publisher) write(ctx context.Context, p publication) error {
	release, err := u.writes.Acquire(ctx, p.key.Namespace, 1)
	if err != nil {
		return err
	}
	defer release()
	writing, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	at := objectsOf(u.client, p.resource, p.key.Namespace)
	stored, err := at.Apply(writing, p.key.Name, p.object, metav1.ApplyOptions{FieldManager: u.fieldOwner, Force: true})
	if err == nil && stored.GetAnnotations()[p.resource.Annotation] != p.value {
		err = errNotStored
	}
	if err != nil {
		return fmt.Errorf("write the annotation %s: %w", p.resource.Annotation, err)
	}
	return nil
}
