package reload

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/absence"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// Watches says which watches fail; watchhealth.Monitor does. A resource is written as in the rule of a Role.
type Watches interface {
	Failing(resource, namespace string) bool
}

const (
	// recheckEvery is how often what a failing watch would report is looked at.
	recheckEvery = time.Minute
	// recheckPause is the least time between two objects, recheckInFlight how many are read at a time: an API server that has
	// a problem must not have one more. A round of 3,000 objects takes a minute.
	recheckPause    = 20 * time.Millisecond
	recheckInFlight = 8
)

// configResource is the name of the watch of config objects of a kind.
func configResource(kind reference.Kind) string {
	if kind == reference.Secret {
		return "secrets"
	}
	return "configmaps"
}

// blindTo reports whether the watch of a resource fails in a namespace.
func (l *loop) blindTo(resource, namespace string) bool {
	return l.health != nil && resource != "" && l.health.Failing(resource, namespace)
}

// blindToKind is blindTo for a kind of workloads.
func (l *loop) blindToKind(gvk schema.GroupVersionKind, namespace string) bool {
	if l.health == nil {
		return false
	}
	mapping, err := l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err == nil && l.blindTo(mapping.Resource.GroupResource().String(), namespace)
}

// blindToNamespaces reports whether labels of namespaces matter and their watch fails.
func (l *loop) blindToNamespaces() bool {
	return l.opts.Scope.SelectsNamespaces() && l.blindTo("namespaces", "")
}

// recheck looks, as long as a watch fails, at what it would report. It runs on the leader.
func (l *loop) recheck(ctx context.Context) error {
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			l.recheckAll(ctx)
		}
	}
}

// recheckAll looks once at everything that failing watches would report. A config object that has changed queues its
// workloads, as its watch would have done; a workload is queued, and read when it is reconciled.
func (l *loop) recheckAll(ctx context.Context) {
	places := l.index.tracked(func(at place) bool { return l.blindTo(configResource(at.ref.Kind), at.namespace) })
	keys := l.unseen()
	if len(places)+len(keys) == 0 {
		return
	}
	log.FromContext(ctx).V(1).Info("Looking at what failing watches may have missed", "configObjects", len(places), "workloads", len(keys))
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
	for _, at := range places {
		if !paced() {
			break
		}
		group.Go(func() error {
			if err := l.store.Recheck(ctx, at.namespace, at.ref); err != nil {
				log.FromContext(ctx).V(1).Info("Cannot look at a config object", "error", err.Error())
			}
			return nil
		})
	}
	_ = group.Wait() // each error is logged
	for _, key := range keys {
		if !paced() {
			return
		}
		l.add(priorityWorkload, key)
	}
}

// unseen returns the workloads of which a change would not be seen, sorted.
func (l *loop) unseen() []Key {
	kinds := map[schema.GroupVersionKind]map[string]bool{}
	all := l.blindToNamespaces()
	return slices.DeleteFunc(l.index.All(), func(key Key) bool {
		w := l.watches.get(key.Kind)
		if w == nil || all {
			return w == nil
		}
		gvk := w.kind.GroupVersionKind
		if kinds[gvk] == nil {
			kinds[gvk] = map[string]bool{}
		}
		blind, known := kinds[gvk][key.Namespace]
		if !known {
			blind = l.blindToKind(gvk, key.Namespace)
			kinds[gvk][key.Namespace] = blind
		}
		return !blind
	})
}

// tracked returns the config objects that are tracked and that pick selects, sorted.
func (x *index) tracked(pick func(place) bool) []place {
	x.mu.RLock()
	var places []place
	for at := range x.byRef {
		places = append(places, at)
	}
	x.mu.RUnlock()
	places = slices.DeleteFunc(places, func(at place) bool { return !pick(at) })
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), a.ref.Compare(b.ref))
	})
	return places
}

// readWorkload returns what is kept of a workload, or reads it live where its watch fails. Then it keeps the index up to date in
// place of the watch. Where the live read fails, what is kept must do.
func (l *loop) readWorkload(ctx context.Context, w *watched, key Key) (workload.Summary, bool) {
	kept, ok := w.workloads.Get(key.Namespace, key.Name)
	if !l.blindToKind(w.kind.GroupVersionKind, key.Namespace) {
		return kept, ok
	}
	u := emptyObject(w.kind)
	err := l.live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, u)
	switch {
	case absence.Certain(err):
		w.unlessGone(func() { l.index.Delete(key) })
		return workload.Summary{}, false
	case err != nil:
		return kept, ok
	}
	all := func(string) bool { return true }
	live := workload.Summary{Kind: w.kind, Kept: workload.Object{Kind: w.kind, Raw: u.Object}.Keep(workload.Keep{Label: all, Annotation: all})}
	view, _ := l.opts.Reader.ReadSummary(live)
	w.unlessGone(func() { l.index.Set(key, view.Intent.Refs()) })
	return live, true
}

// readNamespace reads the metadata of a namespace: from the cache, or live where its watch fails.
func (l *loop) readNamespace(ctx context.Context, name string, into client.Object) error {
	if l.blindToNamespaces() && l.live.Get(ctx, types.NamespacedName{Name: name}, into) == nil {
		return nil
	}
	return l.cache.Get(ctx, types.NamespacedName{Name: name}, into)
}
