package chain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	defaultFieldOwner = "pod-reloader-referents"
	// writeLimit bounds one write.
	writeLimit = 10 * time.Second
	// scopeAgain is when a namespace is looked at again in which nothing is published.
	scopeAgain = time.Minute
	// contestAgain is when a digest that another writer has removed is restored. maxContest bounds how often that is doubled: to
	// 11 minutes.
	contestAgain = 10 * time.Second
	maxContest   = 6
	// reportContest is how often it is restored before that is reported.
	reportContest = 3
)

// Lead publishes until the context ends. It is for the leader.
func (c *Chain) Lead(ctx context.Context) error {
	c.gather(func(p *pending) { p.leads = ctx })
	<-ctx.Done()
	c.gather(func(p *pending) { p.leads = ctx })
	return nil
}

// publications are the writes to the objects of one namespace, one at a time. The goroutine of Chain.Start alone uses it.
type publications struct {
	due  map[referent.Key]struct{}
	busy bool
}

// maxWrites is how many writes of a namespace follow each other before the graph is asked again: each of them waits for the
// others, and may be of an earlier state by then.
const maxWrites = 100

// lead takes in whether this process leads, and which writes have ended.
func (c *Chain) lead(p pending) {
	if p.leads != nil {
		c.owned.leads, c.owned.sweep = p.leads, true
	}
	if c.owned.leads != nil && c.owned.leads.Err() != nil {
		c.owned.leads = nil
		c.owned.unpublished.clear()
	}
	c.finish(p.written)
	for _, namespace := range p.published {
		c.publicationsOf(namespace).busy = false
	}
}

// publish writes the annotations of nodes that have changed, and of all nodes when this process begins to lead.
func (c *Chain) publish(p pending, changes []referent.Change) {
	if c.owned.leads == nil {
		return
	}
	for _, change := range changes {
		c.due(change.Key)
	}
	for _, key := range p.unpublished {
		c.owned.unpublished.ready(key)
		c.owned.pace.ready(key, c.options.Now())
		c.due(key)
	}
	c.contest(p.removed)
	c.restore(p.changes)
	if c.owned.sweep {
		c.owned.sweep = false
		for _, s := range c.owned.sources {
			for key := range s.known {
				c.due(key)
			}
		}
	}
	for namespace, at := range c.owned.publications {
		c.next(namespace, at)
		if !at.busy && len(at.due) == 0 {
			delete(c.owned.publications, namespace)
		}
	}
}

// restore looks once more, after a while, at the objects that have come without the right annotation: another writer may have
// removed it. Where it does so again and again, each write waits twice as long as the one before: a writer that copies the annotation
// follows each of them.
func (c *Chain) restore(changes []change) {
	wrong := map[int][]referent.Key{}
	for _, change := range changes {
		if o, ok := change.(objectChange); ok && o.source.resource.Publish {
			if _, due := c.graph.Publication(o.key); due {
				times := min(c.owned.contested[o.key], maxContest)
				wrong[times] = append(wrong[times], o.key)
			}
		}
	}
	for times, keys := range wrong {
		time.AfterFunc(contestAgain<<times, func() {
			c.gather(func(p *pending) { p.removed = append(p.removed, keys...) })
		})
	}
}

// contest marks the objects that are still without the right annotation: another writer has removed it.
func (c *Chain) contest(removed []referent.Key) {
	slices.SortFunc(removed, referent.Key.Compare)
	for _, key := range slices.Compact(removed) {
		if _, due := c.graph.Publication(key); !due {
			delete(c.owned.contested, key)
			continue
		}
		if c.owned.unpublished.has(key) {
			continue // it was not replaced: it could not be written
		}
		c.due(key)
		if c.owned.contested[key]++; c.owned.contested[key] == reportContest {
			c.options.Log.Info("A published digest does not remain: another writer replaces it",
				"namespace", key.Namespace, "referent", key.String(), "remedy", "configure another annotation")
		}
	}
}

func (c *Chain) publicationsOf(namespace string) *publications {
	at, ok := c.owned.publications[namespace]
	if !ok {
		at = &publications{due: map[referent.Key]struct{}{}}
		c.owned.publications[namespace] = at
	}
	return at
}

// due marks a node whose annotation is to be looked at.
func (c *Chain) due(key referent.Key) {
	if resource, ok := c.schema.Resource(key.GroupResource()); ok && resource.Publish {
		c.publicationsOf(key.Namespace).due[key] = struct{}{}
	}
}

// next begins writes of a namespace, if some are due and none is under way.
func (c *Chain) next(namespace string, at *publications) {
	if at.busy {
		return
	}
	if len(at.due) > 0 && !c.options.Publishes(namespace) {
		c.postpone(namespace, at)
		return
	}
	var writes []publication
	for _, key := range slices.SortedFunc(maps.Keys(at.due), referent.Key.Compare) {
		if len(writes) == maxWrites {
			break
		}
		delete(at.due, key)
		if write, ok := c.publication(key); ok {
			writes = append(writes, write)
		}
	}
	if len(writes) == 0 {
		return
	}
	at.busy = true
	// It ends with the leadership, and with the configuration, which waits for it.
	ctx, cancel := context.WithCancel(c.owned.leads)
	detach := context.AfterFunc(c.owned.watching, cancel)
	c.owned.running.Go(func() {
		defer cancel()
		defer detach()
		var done []written
		defer func() {
			c.arrive(func(p *pending) { p.published, p.written = append(p.published, namespace), append(p.written, done...) })
		}()
		for _, write := range writes {
			err := c.write(ctx, write)
			switch end := (written{write, err}); {
			case ctx.Err() != nil:
				return // this process leads no more, or has another configuration
			case err != nil:
				c.arrive(func(p *pending) { p.written = append(p.written, end) }) // the others may take long
			default:
				done = append(done, end)
			}
		}
	})
}

// postpone looks at a namespace again later: it may be in scope then.
func (c *Chain) postpone(namespace string, at *publications) {
	at.busy = true
	time.AfterFunc(scopeAgain, func() {
		c.gather(func(p *pending) { p.published = append(p.published, namespace) })
	})
}

// publication is one write.
type publication struct {
	key      referent.Key
	value    string
	resource *referent.Resource
	object   *unstructured.Unstructured
}

// publication returns the write for a node, if its annotation differs. The uid keeps server-side apply from creating an
// object that has been deleted meanwhile.
func (c *Chain) publication(key referent.Key) (publication, bool) {
	value, due := c.graph.Publication(key)
	resource, ok := c.schema.Resource(key.GroupResource())
	stored := c.stored(key)
	if stored == nil || value != "" && !due {
		c.owned.unpublished.forget(key) // it is gone, or has the right annotation
	}
	if !due || !ok || stored == nil || c.owned.unpublished.waits(key, value) || c.paces(key) {
		return publication{}, false
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(stored.GroupVersionKind())
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetUID(stored.GetUID())
	if value != "" {
		object.SetAnnotations(map[string]string{resource.Annotation: value})
	}
	return publication{key, value, resource, object}, true
}

// paces reports whether a write has to wait because there were many before it. Then it is repeated.
func (c *Chain) paces(key referent.Key) bool {
	wait, back := c.owned.pace.wait(key, c.options.Now())
	if back {
		time.AfterFunc(wait, func() {
			c.gather(func(p *pending) { p.unpublished = append(p.unpublished, key) })
		})
	}
	return wait > 0
}

// stored returns an object as a watch has delivered it.
func (c *Chain) stored(key referent.Key) *unstructured.Unstructured {
	for _, s := range c.owned.sources {
		if s.resource.GVR.GroupResource() != key.GroupResource() || s.bulk == nil {
			continue
		}
		if object := s.bulk.Store().Object(key.Namespace, key.Name); object != nil {
			return object
		}
	}
	return nil
}

func (c *Chain) write(ctx context.Context, p publication) error {
	release, err := c.writes.Acquire(ctx, p.key.Namespace, 1)
	if err != nil {
		return err
	}
	defer release()
	writing, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	var at dynamic.ResourceInterface = c.options.Client.Resource(p.resource.GVR)
	if p.key.Namespace != "" {
		at = c.options.Client.Resource(p.resource.GVR).Namespace(p.key.Namespace)
	}
	_, err = at.Apply(writing, p.key.Name, p.object, metav1.ApplyOptions{FieldManager: c.options.FieldOwner, Force: true})
	if err != nil {
		return fmt.Errorf("write the annotation %s: %w", p.resource.Annotation, err)
	}
	return nil
}
