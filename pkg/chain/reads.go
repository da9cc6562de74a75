package chain

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
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

func (c *Chain) readsOf(namespace string) *reads {
	r, ok := c.owned.reads[namespace]
	if !ok {
		r = &reads{wanted: map[reference.Ref]struct{}{}, failed: map[reference.Ref]struct{}{}}
		c.owned.reads[namespace] = r
	}
	return r
}

// read begins the batches that can begin. They end with the configuration, which waits for them.
func (c *Chain) read() {
	ctx := c.owned.watching
	for namespace, r := range c.owned.reads {
		if len(r.wanted) == 0 || r.inFlight != nil {
			continue
		}
		refs := make([]reference.Ref, 0, len(r.wanted))
		for ref := range r.wanted {
			refs = append(refs, ref)
		}
		slices.SortFunc(refs, reference.Ref.Compare)
		r.inFlight, r.wanted = r.wanted, map[reference.Ref]struct{}{}
		c.owned.running.Go(func() { c.readBatch(ctx, namespace, refs) })
	}
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
			done.changes = append(done.changes, contentChange{configKey: configKey{namespace, one.Ref}, forbidden: "it may not be read"})
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
	c.gather(func(p *pending) {
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
