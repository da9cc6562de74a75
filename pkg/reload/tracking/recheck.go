package tracking

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
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
	// recheckPause is the least time between two objects, recheckInFlight how many are read at a time, so that the
	// reads do not overload a failing API server. A round of 3,000 objects takes a minute.
	recheckPause    = 20 * time.Millisecond
	recheckInFlight = 8
)

// Recheck reads the objects of each watch that fails, again and again until the context ends. It runs on the leader.
func (t *Tracking) Recheck(ctx context.Context) error {
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			t.recheckAll(ctx)
		}
	}
}

// recheckAll looks once at everything that failing watches would report. A config object that has changed queues its workloads, as
// its watch would have done; a workload is queued, and read when it is reconciled.
func (t *Tracking) recheckAll(ctx context.Context) {
	objects := t.unwatched()
	keys := t.unseen()
	if len(objects)+len(keys) == 0 {
		return
	}
	log.FromContext(ctx).V(1).Info("reading tracked objects, because watches fail", "configObjects", len(objects), "workloads", len(keys))
	pause := time.NewTicker(recheckPause)
	defer pause.Stop()
	paced := func() bool {
		select {
		case <-ctx.Done():
			return false
		case <-pause.C:
			return true
		}
	}
	var group errgroup.Group
	group.SetLimit(recheckInFlight)
	for _, at := range objects {
		if !paced() {
			break
		}
		group.Go(func() error {
			if err := t.with.Store.Recheck(ctx, at.Namespace, at.Ref); err != nil {
				log.FromContext(ctx).V(1).Info("cannot read a config object", "error", err.Error())
			}
			return nil
		})
	}
	_ = group.Wait() // each error is logged
	for _, key := range keys {
		if !paced() {
			return
		}
		t.with.Queue.Add(queue.Workload, key)
	}
}

// unwatched returns the config objects whose watch fails, each once: those that workloads track, by name or by a pattern, and those to
// which custom resources refer.
func (t *Tracking) unwatched() []index.Object {
	objects := t.index.Tracked(func(at index.Object) bool { return t.failing.includes(at.Ref.Kind.Content(), at.Namespace) })
	known := make(map[index.Object]struct{}, len(objects))
	for _, at := range objects {
		known[at] = struct{}{}
	}
	add := func(namespace string, refs []reference.Ref) {
		for _, ref := range refs {
			at := index.Object{Namespace: namespace, Ref: ref}
			if _, has := known[at]; !has && t.failing.includes(ref.Kind.Content(), namespace) {
				known[at] = struct{}{}
				objects = append(objects, at)
			}
		}
	}
	for _, namespace := range t.index.Namespaces() {
		if t.failing.includesPatterns(namespace) {
			for _, key := range t.index.In(namespace) {
				add(namespace, t.matched(key))
			}
		}
	}
	if referents, ok := t.with.Store.(Referents); ok {
		referred := referents.Referred()
		for _, namespace := range slices.Sorted(maps.Keys(referred)) {
			add(namespace, referred[namespace])
		}
	}
	return objects
}

// matched returns what a workload with patterns tracks. The index has no names of what they match: those come from the metadata cache,
// and from the Record where that has more. New objects have no known name.
func (t *Tracking) matched(key workload.Key) []reference.Ref {
	w := t.watches.get(key.Kind)
	if w == nil {
		return nil
	}
	s, ok := w.workloads.Get(key.Namespace, key.Name)
	if !ok || len(t.with.Reader.Intent(s).Patterns()) == 0 { // to read all of them in full takes longer
		return nil
	}
	view, _ := t.with.Reader.ReadSummary(s)
	return view.Intent.Refs()
}

// unseen returns the workloads of which a change would not be seen. Those whose live read was skipped in the most rounds come first, so
// that each has its turn where reads take long. Otherwise they are sorted.
func (t *Tracking) unseen() []workload.Key {
	before := t.skips
	t.skips = map[workload.Key]int{}
	for key := range t.watches.takeSkipped() {
		t.skips[key] = before[key] + 1
	}
	keys := t.withFailingWatch()
	slices.SortStableFunc(keys, func(a, b workload.Key) int { return t.skips[b] - t.skips[a] })
	return keys
}

// withFailingWatch returns the workloads whose watch, or that of their namespaces, fails, sorted.
func (t *Tracking) withFailingWatch() []workload.Key {
	kinds := map[schema.GroupVersionKind]map[string]bool{}
	all := t.failing.includesNamespaces(t.with.Scope)
	return slices.DeleteFunc(t.index.All(), func(key workload.Key) bool {
		w := t.watches.get(key.Kind)
		if w == nil || all {
			return w == nil
		}
		gvk := w.kind.GroupVersionKind
		if kinds[gvk] == nil {
			kinds[gvk] = map[string]bool{}
		}
		fails, known := kinds[gvk][key.Namespace]
		if !known {
			fails = t.failing.includesKind(w, key.Namespace)
			kinds[gvk][key.Namespace] = fails
		}
		return !fails
	})
}
