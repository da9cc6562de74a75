package chain

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// readLimit bounds the reads of one namespace.
	readLimit = 30 * time.Second
	// readAgain is when a read that failed is repeated.
	readAgain = 10 * time.Second
)

// reads are the reads of config objects of one namespace: one batch at a time, so that a namespace whose reads hang holds up
// no other. The goroutine of Chain.Start alone uses it.
type reads struct {
	wanted map[reference.Ref]struct{}
	// inFlight are those of the batch that is under way; failed are repeated later.
	inFlight, failed map[reference.Ref]struct{}
}

// want asks for what is not under way and has not just failed.
func (r *reads) want(ref reference.Ref) {
	_, reading := r.inFlight[ref]
	_, failed := r.failed[ref]
	if !reading && !failed {
		r.wanted[ref] = struct{}{}
	}
}

// wantAnew asks for a read that begins now.
func (r *reads) wantAnew(ref reference.Ref) { r.wanted[ref] = struct{}{} }

// ready reports whether a batch can begin, idle whether nothing is left to do.
func (r *reads) ready() bool { return len(r.wanted) > 0 && r.inFlight == nil }
func (r *reads) idle() bool  { return len(r.wanted)+len(r.failed) == 0 && r.inFlight == nil }

func (c *Chain) readsOf(namespace string) *reads {
	r, ok := c.owned.reads[namespace]
	if !ok {
		r = &reads{wanted: map[reference.Ref]struct{}{}, failed: map[reference.Ref]struct{}{}}
		c.owned.reads[namespace] = r
	}
	return r
}

// readChanged begins to read what has changed, and returns what is closed once it has been read.
func (c *Chain) readChanged() (done <-chan struct{}) {
	c.mu.Lock()
	changed := c.pending.config
	c.pending.config = nil
	c.mu.Unlock()
	c.want(pending{config: changed}, nil)
	return c.read()
}

// want asks for what has changed, and for what has not been read.
func (c *Chain) want(p pending, unread []referent.Key) {
	for _, key := range unread {
		if ref, ok := key.Ref(); ok {
			c.readsOf(key.Namespace).want(ref)
		}
	}
	for at := range p.config {
		c.readsOf(at.namespace).wantAnew(at.ref)
	}
}

// wanting reports whether a batch can begin.
func (c *Chain) wanting() bool {
	for _, r := range c.owned.reads {
		if r.ready() {
			return true
		}
	}
	return false
}

// read begins the batches that can begin. They end with the configuration, which waits for them; then the channel is closed.
func (c *Chain) read() (done <-chan struct{}) {
	ctx := c.owned.watching
	ended := make(chan struct{})
	var left atomic.Int64
	end := func() {
		if left.Add(-1) == 0 {
			close(ended)
		}
	}
	left.Add(1)
	defer end()
	for namespace, r := range c.owned.reads {
		if r.idle() {
			delete(c.owned.reads, namespace)
		}
		if !r.ready() {
			continue
		}
		refs := slices.SortedFunc(maps.Keys(r.wanted), reference.Ref.Compare)
		r.inFlight, r.wanted = r.wanted, map[reference.Ref]struct{}{}
		left.Add(1)
		c.owned.running.Go(func() {
			defer end()
			c.readBatch(ctx, namespace, refs)
		})
	}
	return ended
}

const notWatched = "the namespace is not watched"

// isOutside reports whether a namespace is not watched: changes in it would not be seen.
func (c *Chain) isOutside(namespace string) bool {
	return len(c.options.Namespaces) > 0 && !slices.Contains(c.options.Namespaces, namespace)
}

// readBatch reads and hands over what it has found.
func (c *Chain) readBatch(ctx context.Context, namespace string, refs []reference.Ref) {
	if c.isOutside(namespace) {
		c.handOver(batch{namespace: namespace, outside: refs})
		return
	}
	reading, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	states, err := c.options.Config.Current(reading, namespace, refs)
	done := batch{namespace: namespace}
	if ctx.Err() != nil {
		c.handOver(done) // what the next configuration refers to is read again
		return
	}
	failed := map[reference.Ref]bool{}
	for _, one := range configstate.ReadErrors(err) {
		failed[one.Ref] = true
		done.failed = append(done.failed, one.Ref)
		if apierrors.IsForbidden(one.Err) {
			done.changes = append(done.changes, contentChange{
				configKey: configKey{namespace, one.Ref}, forbidden: "it may not be read", refused: c.options.Now(),
			})
			continue
		}
		c.options.Log.V(1).Info("Cannot read a config object of the graph", "namespace", namespace, "ref", one.Ref.String(), "error", one.Err.Error())
	}
	for _, ref := range refs {
		state, ok := states[ref]
		switch {
		case failed[ref]:
		case ok:
			done.changes = append(done.changes, contentChange{configKey: configKey{namespace, ref}, state: state})
		default:
			done.failed = append(done.failed, ref)
		}
	}
	c.handOver(done)
}

// batch is the end of a batch of reads.
type batch struct {
	namespace string
	changes   []contentChange
	failed    []reference.Ref
	// outside are config objects of a namespace that is not watched: their changes would not be seen.
	outside []reference.Ref
}

func (c *Chain) handOver(b batch) {
	c.arrive(func(p *pending) {
		for _, change := range b.changes {
			p.changes = append(p.changes, change)
		}
		for _, ref := range b.outside {
			p.changes = append(p.changes, contentChange{configKey: configKey{b.namespace, ref}, forbidden: notWatched})
		}
		p.batches = append(p.batches, b)
	})
	if len(b.failed) > 0 {
		time.AfterFunc(readAgain, func() {
			c.gather(func(p *pending) { p.retries = append(p.retries, b) })
		})
	}
}

// closeBatches takes in which batches have ended, and which failed reads can be repeated.
func (c *Chain) closeBatches(p pending) {
	for _, b := range p.batches {
		r := c.readsOf(b.namespace)
		r.inFlight = nil
		for _, ref := range b.failed {
			r.failed[ref] = struct{}{}
		}
	}
	for _, b := range p.retries {
		r := c.readsOf(b.namespace)
		for _, ref := range b.failed {
			delete(r.failed, ref)
			r.wantAnew(ref)
		}
	}
}
