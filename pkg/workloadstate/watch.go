package workloadstate

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Changed is called for each change of a workload: created (before has no Kept), changed, or deleted (after has no Kept). It is
// called after Get shows the change, and must return soon: the watch waits for it. It is also called for a workload that a later listing
// brings as it was (before and after are the same): what was written meanwhile is lost, as by a restore of etcd, or comes later. listed is
// the resourceVersion of the first listing of its namespace where that brings the workload, which was there before; empty for all that
// comes later.
type Changed func(before, after workload.Summary, listed string)

// Watch follows the workloads of one kind. Its methods are safe for concurrent use.
type Watch struct {
	source  *Source
	kind    workload.Kind
	changed Changed
	log     logr.Logger

	// target is what is followed; nil until the resource of the kind is found. unserved has one that the API server does not have any more.
	target   atomic.Pointer[target]
	unserved chan *target
	// lookups are those after an answer of 404.
	lookups outcomes

	mu sync.RWMutex
	// byName has the workloads by namespace and name.
	byName map[string]map[string]*workload.Kept
}

// Watch makes the watch of a kind; Run runs it.
func (s *Source) Watch(kind workload.Kind, changed Changed) *Watch {
	return &Watch{
		source: s, kind: kind, changed: changed, log: s.options.Log.WithValues("kind", kind.ID()),
		byName: map[string]map[string]*workload.Kept{}, unserved: make(chan *target, 1),
	}
}

// Get returns a workload, or false if there is none.
func (w *Watch) Get(namespace, name string) (workload.Summary, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	kept, ok := w.byName[namespace][name]
	return workload.Summary{Kind: w.kind, Kept: kept}, ok
}

// Run watches until the context ends.
func (w *Watch) Run(ctx context.Context) {
	l := &lookup{of: w}
	to, ok := l.findFirst(ctx)
	if !ok {
		return
	}
	w.target.Store(&to)
	var running sync.WaitGroup
	running.Go(func() { l.follow(ctx) })
	for _, namespace := range to.namespaces {
		log := w.log
		if namespace != "" {
			log = log.WithValues("namespace", namespace)
		}
		f := &follower{of: w, namespace: namespace, shape: workload.Shape(w.kind), log: log}
		running.Go(func() { f.run(ctx) })
	}
	running.Wait()
}

// put stores a workload as a watch or a listing delivers it.
func (w *Watch) put(kept *workload.Kept, listed string) {
	after := workload.Summary{Kind: w.kind, Kept: kept}
	w.mu.Lock()
	before := workload.Summary{Kind: w.kind, Kept: w.byName[after.Namespace()][after.Name()]}
	if before.Kept != nil {
		after.Kept = kept.Share(before.Kept)
	}
	add(w.byName, after.Kept)
	w.mu.Unlock()
	w.changed(before, after, listed)
}

// remove deletes a workload.
func (w *Watch) remove(namespace, name string) {
	w.mu.Lock()
	kept, ok := w.byName[namespace][name]
	delete(w.byName[namespace], name)
	if len(w.byName[namespace]) == 0 {
		delete(w.byName, namespace)
	}
	w.mu.Unlock()
	if ok {
		w.changed(workload.Summary{Kind: w.kind, Kept: kept}, workload.Summary{Kind: w.kind}, "")
	}
}

// replace stores a listing of a namespace, or of all, in place of the workloads known before. first is its version if it is the first one.
func (w *Watch) replace(namespace string, listed []*workload.Kept, first string) {
	fresh := map[string]map[string]*workload.Kept{}
	all := make([]workload.Summary, 0, len(listed))
	for _, kept := range listed {
		add(fresh, kept)
		all = append(all, workload.Summary{Kind: w.kind, Kept: kept})
	}
	for _, gone := range sorted(w.without(namespace, fresh)) {
		w.remove(gone.Namespace(), gone.Name())
	}
	for _, s := range sorted(all) {
		known, _ := w.Get(s.Namespace(), s.Name())
		if known.UID() != s.UID() || known.ResourceVersion() != s.ResourceVersion() {
			w.put(s.Kept, first)
			continue
		}
		w.changed(known, known, "")
	}
}

// without returns the known workloads of a namespace, or of all, that are not in a listing.
func (w *Watch) without(namespace string, fresh map[string]map[string]*workload.Kept) []workload.Summary {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var gone []workload.Summary
	for at, known := range w.byName {
		if namespace != "" && at != namespace {
			continue
		}
		for name, kept := range known {
			if _, ok := fresh[at][name]; !ok {
				gone = append(gone, workload.Summary{Kind: w.kind, Kept: kept})
			}
		}
	}
	return gone
}

// sorted returns workloads in a deterministic order.
func sorted(all []workload.Summary) []workload.Summary {
	slices.SortFunc(all, func(a, b workload.Summary) int {
		return cmp.Or(cmp.Compare(a.Namespace(), b.Namespace()), cmp.Compare(a.Name(), b.Name()))
	})
	return all
}

func add(byName map[string]map[string]*workload.Kept, kept *workload.Kept) {
	s := workload.Summary{Kept: kept}
	inside, ok := byName[s.Namespace()]
	if !ok {
		inside = map[string]*workload.Kept{}
		byName[s.Namespace()] = inside
	}
	inside[s.Name()] = kept
}
