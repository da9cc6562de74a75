package chain

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-reloader/pod-reloader/pkg/configstate"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// readLimit bounds the reads of one namespace, and the live read of one custom resource.
	readLimit = 30 * time.Second
	// readAgain is when a read that failed is repeated. Where the API server refuses it, that is up to longestReadAgain.
	readAgain, longestReadAgain = 10 * time.Second, time.Minute
)

// reads are the reads of config objects, by namespace. The evaluator alone uses them.
type reads struct {
	config     Config
	namespaces namespaces
	inbox      *inbox
	lifetime   *lifetime
	now        func() time.Time
	log        logr.Logger

	in map[string]*namespaceReads
}

// namespaceReads are those of one namespace: one batch at a time, so that a namespace whose reads hang holds up no other.
type namespaceReads struct {
	wanted map[reference.Ref]struct{}
	// inFlight are those of the batch that is under way.
	inFlight map[reference.Ref]struct{}
	// failed are repeated later, and when. Where one is read before that, its wait ends.
	failed map[reference.Ref]time.Time
	// failing are those whose last read has failed.
	failing map[reference.Ref]failedReads
}

// failedReads are the failed reads of a config object in a row.
type failedReads struct {
	// since is when the first one was, refused when the first one was that the API server has refused since another failure; zero if it did
	// not refuse the last one.
	since, refused time.Time
}

// and adds a read that began at some time.
func (f failedReads) and(began time.Time, refused bool) failedReads {
	if f.since.IsZero() {
		f.since = began
	}
	if !refused {
		f.refused = time.Time{}
	} else if f.refused.IsZero() {
		f.refused = began
	}
	return f
}

// wait is how long after the last one the next read is made: a missing permission is looked for at intervals that double.
func (f failedReads) wait(now time.Time) time.Duration {
	if f.refused.IsZero() {
		return readAgain
	}
	return min(max(readAgain, now.Sub(f.refused)), longestReadAgain)
}

// want asks for what is not under way and has not just failed.
func (r *namespaceReads) want(ref reference.Ref) {
	_, reading := r.inFlight[ref]
	_, failed := r.failed[ref]
	if !reading && !failed {
		r.wanted[ref] = struct{}{}
	}
}

// requestNew asks for a read that begins now.
func (r *namespaceReads) requestNew(ref reference.Ref) { r.wanted[ref] = struct{}{} }

// again asks for what has failed and is not under way.
func (r *namespaceReads) again(ref reference.Ref) {
	if _, failed := r.failed[ref]; failed {
		delete(r.failed, ref)
		r.wanted[ref] = struct{}{}
	}
}

// begin returns the reads of the next batch, which is under way from now on.
func (r *namespaceReads) begin() []reference.Ref {
	r.inFlight, r.wanted = r.wanted, map[reference.Ref]struct{}{}
	for ref := range r.inFlight {
		delete(r.failed, ref)
	}
	return slices.SortedFunc(maps.Keys(r.inFlight), reference.Ref.Compare)
}

// end takes in which reads of the batch under way have failed.
func (r *namespaceReads) end(b batch) {
	for ref := range r.inFlight {
		delete(r.failing, ref)
	}
	r.inFlight = nil
	for ref, failed := range b.failed {
		r.failed[ref], r.failing[ref] = b.due, failed
	}
}

// forget takes back that an object is to be read again.
func (r *namespaceReads) forget(ref reference.Ref) {
	delete(r.failed, ref)
	delete(r.failing, ref)
}

// ready reports whether a batch can begin, underWay whether one can, or has not ended, idle whether nothing is left to do.
func (r *namespaceReads) ready() bool { return len(r.wanted) > 0 && r.inFlight == nil }

func (r *namespaceReads) underWay() bool { return len(r.wanted) > 0 || r.inFlight != nil }

func (r *namespaceReads) idle() bool { return !r.underWay() && len(r.failed) == 0 }

func (r *reads) of(namespace string) *namespaceReads {
	in, ok := r.in[namespace]
	if !ok {
		in = &namespaceReads{
			wanted: map[reference.Ref]struct{}{}, failed: map[reference.Ref]time.Time{}, failing: map[reference.Ref]failedReads{},
		}
		r.in[namespace] = in
	}
	return in
}

// want asks for what has changed, and for what has not been read.
func (r *reads) want(changed map[configKey]struct{}, unread []referent.Key) {
	for _, key := range unread {
		if ref, ok := key.Ref(); ok {
			r.of(key.Namespace).want(ref)
		}
	}
	for at := range changed {
		r.of(at.namespace).requestNew(at.ref)
	}
}

// any reports whether something is so of a namespace.
func (r *reads) any(is func(*namespaceReads) bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(r.in)), is)
}

// outstanding returns what is to be read, or is being read.
func (r *reads) outstanding() map[referent.Key]struct{} {
	outstanding := map[referent.Key]struct{}{}
	for namespace, in := range r.in {
		for _, refs := range []iter.Seq[reference.Ref]{maps.Keys(in.wanted), maps.Keys(in.inFlight), maps.Keys(in.failed)} {
			for ref := range refs {
				outstanding[referent.ConfigKey(namespace, ref)] = struct{}{}
			}
		}
	}
	return outstanding
}

// begin begins the batches that can begin. They end with the configuration, which waits for them; then the channel is closed.
func (r *reads) begin() (done <-chan struct{}) {
	ended := make(chan struct{})
	var left atomic.Int64
	end := func() {
		if left.Add(-1) == 0 {
			close(ended)
		}
	}
	left.Add(1)
	defer end()
	for namespace, in := range r.in {
		if in.idle() {
			delete(r.in, namespace)
		}
		if !in.ready() {
			continue
		}
		refs, failing := in.begin(), maps.Clone(in.failing)
		left.Add(1)
		r.lifetime.run(func(ctx context.Context) {
			defer end()
			r.read(ctx, namespace, refs, failing)
		})
	}
	return ended
}

// read reads a batch and hands over what it has found. failing are the failed reads until now.
func (r *reads) read(ctx context.Context, namespace string, refs []reference.Ref, failing map[reference.Ref]failedReads) {
	if r.namespaces.outside(namespace) {
		r.handOver(batch{namespace: namespace, outside: refs})
		return
	}
	reading, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	began := r.now()
	states, err := r.config.ReadIfChanged(reading, namespace, refs)
	done := batch{namespace: namespace, failed: map[reference.Ref]failedReads{}}
	if ctx.Err() != nil {
		r.handOver(done) // what the next configuration refers to is read again
		return
	}
	for _, one := range configstate.ReadErrors(err) {
		failed := failing[one.Ref].and(began, apierrors.IsForbidden(one.Err))
		done.failed[one.Ref] = failed
		done.changes = append(done.changes, r.unreadable(configKey{namespace, one.Ref}, one.Err, failed.since))
	}
	for _, ref := range refs {
		if _, failed := done.failed[ref]; failed {
			continue
		}
		if state, ok := states[ref]; ok {
			done.changes = append(done.changes, contentChange{configKey: configKey{namespace, ref}, state: state})
		} else {
			done.failed[ref] = failing[ref].and(began, false)
		}
	}
	r.handOver(done)
}

// maxErrorText bounds the text of an error in a Hold: messages repeat it.
const maxErrorText = 200

// unreadable is what a failed read says of a config object, which cannot be read since some time.
func (r *reads) unreadable(key configKey, err error, since time.Time) contentChange {
	if apierrors.IsForbidden(err) {
		return contentChange{configKey: key, forbidden: "it may not be read", refused: r.now()}
	}
	r.log.V(1).Info("cannot read a config object of the graph", "namespace", key.namespace, "ref", key.ref.String(), "error", err.Error())
	return contentChange{
		configKey: key, unreadable: "it cannot be read: " + reference.Cut(err.Error(), maxErrorText),
		lasting: r.now().Sub(since) >= digest.ReportHoldAfter,
	}
}

// batch is the end of a batch of reads.
type batch struct {
	namespace string
	changes   []contentChange
	// failed cannot be read. They are repeated together when they are due.
	failed map[reference.Ref]failedReads
	due    time.Time
	// outside are config objects of a namespace that is not watched: their changes would not be seen.
	outside []reference.Ref
}

func (r *reads) handOver(b batch) {
	now, wait := r.now(), longestReadAgain
	for _, failed := range b.failed {
		wait = min(wait, failed.wait(now))
	}
	b.due = now.Add(wait)
	r.inbox.arrive(func(p *pending) {
		for _, change := range b.changes {
			p.changes = append(p.changes, change)
		}
		for _, ref := range b.outside {
			p.changes = append(p.changes, contentChange{configKey: configKey{b.namespace, ref}, forbidden: notWatched})
		}
		p.batches = append(p.batches, b)
	})
	if len(b.failed) > 0 {
		r.inbox.gatherAfter(wait, func(p *pending) { p.retries = append(p.retries, b) })
	}
}

// end takes in which batches have ended, and which failed reads can be repeated: those of objects to which the graph still refers. It is
// nil where there is none.
func (r *reads) end(graph *referent.Graph, batches, retries []batch) {
	for _, b := range batches {
		r.of(b.namespace).end(b)
	}
	for _, b := range retries {
		in := r.of(b.namespace)
		for ref := range b.failed {
			switch due, failed := in.failed[ref]; {
			case !failed || !due.Equal(b.due): // it was read again meanwhile
			case graph != nil && graph.Refers(b.namespace, ref):
				in.again(ref)
			default:
				in.forget(ref)
			}
		}
	}
}
