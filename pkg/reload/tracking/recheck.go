package tracking

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/reload/queue"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

const (
	// recheckEvery is how often the objects of a failing watch are read.
	recheckEvery = time.Minute
	// recheckPause is the least time between two objects, recheckInFlight how many of a kind are read at a time, so that the
	// reads do not overload a failing API server. A round of 3,000 objects takes a minute.
	recheckPause    = 20 * time.Millisecond
	recheckInFlight = 8
)

// rechecks read what failing watches would report.
type rechecks struct {
	with    Options
	watches *watches
	index   *index.Index
	failing failingWatches
	pace    *rate.Limiter
	// rounds has the kinds of config objects of which a round has not ended; reading waits for the end of all.
	rounds  sync.Map
	reading sync.WaitGroup
	// skips counts in how many rounds the live read of a workload was skipped since it was read. One goroutine uses it.
	skips map[workload.Key]int
}

func newRechecks(t *Tracking) *rechecks {
	pace := rate.NewLimiter(rate.Every(recheckPause), 1)
	return &rechecks{with: t.with, watches: t.watches, index: t.index, failing: t.failing, pace: pace}
}

// run reads the objects of each watch that fails, again and again until the context ends. It runs on every replica: the webhook of a
// standby, too, answers from what the watches of config objects have delivered, where it does not read them live. Without that, it would
// go on to refuse or to purge what the leader asks for.
func (r *rechecks) run(ctx context.Context) error {
	defer r.reading.Wait()
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			r.once(ctx)
		}
	}
}

// once begins to look at everything that failing watches would report. A config object that has changed queues its workloads, as
// its watch would have done; a workload is queued, and read when it is reconciled. Mostly, all watches work.
func (r *rechecks) once(ctx context.Context) {
	r.countSkips()
	if !r.failing.any() {
		return
	}
	objects := r.unwatched()
	keys := r.unseen()
	if len(objects)+len(keys) == 0 {
		return
	}
	log.FromContext(ctx).V(1).Info("reading tracked objects, because watches fail", "configObjects", len(objects), "workloads", len(keys))
	kinds := map[reference.Kind][]index.Object{}
	for _, at := range objects {
		kinds[at.Ref.Kind] = append(kinds[at.Ref.Kind], at)
	}
	for kind, of := range kinds {
		r.begin(ctx, kind, of)
	}
	for _, key := range keys {
		if r.pace.Wait(ctx) != nil {
			return
		}
		r.with.Queue.Add(queue.Workload, key)
	}
}

// begin begins a round of a kind of config objects, unless its last one has not ended. Mostly, reads hang by kind: those of Secrets behind
// a KMS, or those of a custom resource behind a conversion webhook.
func (r *rechecks) begin(ctx context.Context, kind reference.Kind, objects []index.Object) {
	if _, runs := r.rounds.LoadOrStore(kind, struct{}{}); runs {
		return
	}
	r.reading.Go(func() {
		defer r.rounds.Delete(kind)
		r.read(ctx, objects)
	})
}

// read reads config objects.
func (r *rechecks) read(ctx context.Context, objects []index.Object) {
	var group errgroup.Group
	group.SetLimit(recheckInFlight)
	for _, at := range objects {
		if r.pace.Wait(ctx) != nil {
			break
		}
		group.Go(func() error {
			if err := r.with.Store.Recheck(ctx, at.Namespace, at.Ref); err != nil {
				log.FromContext(ctx).V(1).Info("cannot read a config object", "error", err.Error())
			}
			return nil
		})
	}
	_ = group.Wait() // each error is logged
}

// unwatched returns the config objects whose watch fails, each once: those that workloads track, by name or by a pattern, and those to
// which custom resources refer.
func (r *rechecks) unwatched() []index.Object {
	referents, _ := r.with.Store.(Referents)
	tracked := r.index.Tracked(func(at index.Object) bool { return r.failing.includes(at.Ref.Kind.Content(), at.Namespace) })
	found := distinct{referents: referents, known: make(map[index.Object]struct{}, len(tracked))}
	for _, at := range tracked {
		found.add(at)
	}
	add := func(namespace string, refs []reference.Ref) {
		for _, ref := range refs {
			if r.failing.includes(ref.Kind.Content(), namespace) {
				found.add(index.Object{Namespace: namespace, Ref: ref})
			}
		}
	}
	for _, namespace := range r.index.Namespaces() {
		if r.failing.includesPatterns(namespace) {
			for _, key := range r.index.In(namespace) {
				add(namespace, r.matched(key))
			}
		}
	}
	if referents != nil {
		referred := referents.Referred()
		for _, namespace := range slices.Sorted(maps.Keys(referred)) {
			add(namespace, referred[namespace])
		}
	}
	return found.objects
}

// distinct are config objects, each once, in the order in which they were added.
type distinct struct {
	referents Referents // nil where there are no custom resources
	known     map[index.Object]struct{}
	objects   []index.Object
}

// add adds an object, unless it is known. Workloads of many namespaces can track the same cluster-scoped one.
func (d *distinct) add(at index.Object) {
	if d.referents != nil && d.referents.ClusterScoped(at.Ref.Kind) {
		at.Namespace = ""
	}
	if _, has := d.known[at]; !has {
		d.known[at] = struct{}{}
		d.objects = append(d.objects, at)
	}
}

// matched returns what a workload with patterns tracks. The index has no names of what they match: those come from the metadata cache,
// and from the Record where that has more. New objects have no known name.
func (r *rechecks) matched(key workload.Key) []reference.Ref {
	w := r.watches.get(key.Kind)
	if w == nil {
		return nil
	}
	s, ok := w.workloads.Get(key.Namespace, key.Name)
	if !ok || len(r.with.Reader.Intent(s).Patterns()) == 0 { // to read all of them in full takes longer
		return nil
	}
	view, _ := r.with.Reader.ReadSummary(s)
	return view.Intent.Refs()
}

// countSkips counts the live reads that were skipped since the last round. A workload that was read begins again.
func (r *rechecks) countSkips() {
	before := r.skips
	r.skips = map[workload.Key]int{}
	for key := range r.watches.takeSkipped() {
		r.skips[key] = before[key] + 1
	}
}

// unseen returns the workloads of which a change would not be seen; none on a standby, which looks at all of them when it begins to lead.
// Those whose live read was skipped in the most rounds come first, so that each has its turn where reads take long. Otherwise they are sorted.
func (r *rechecks) unseen() []workload.Key {
	if !r.with.Queue.Leads() {
		return nil
	}
	keys := r.withFailingWatch()
	slices.SortStableFunc(keys, func(a, b workload.Key) int { return r.skips[b] - r.skips[a] })
	return keys
}

// withFailingWatch returns the workloads whose watch, or that of their namespaces, fails, sorted.
func (r *rechecks) withFailingWatch() []workload.Key {
	kinds := map[schema.GroupVersionKind]map[string]bool{}
	all := r.failing.includesNamespaces(r.with.Scope)
	return r.index.Select(func(key workload.Key) bool {
		w := r.watches.get(key.Kind)
		if w == nil || all {
			return w != nil
		}
		gvk := w.kind.GroupVersionKind
		if kinds[gvk] == nil {
			kinds[gvk] = map[string]bool{}
		}
		fails, known := kinds[gvk][key.Namespace]
		if !known {
			fails = r.failing.includesKind(w, key.Namespace)
			kinds[gvk][key.Namespace] = fails
		}
		return fails
	})
}
