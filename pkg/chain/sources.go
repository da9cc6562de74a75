package chain

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// sources are the watches of a configuration. The evaluator alone uses them.
type sources struct {
	client     dynamic.Interface
	namespaces namespaces
	inbox      *inbox
	lifetime   *lifetime
	now        func() time.Time
	log        logr.Logger
	// mostReferences is how many references a source keeps of a namespace.
	mostReferences int

	all []*source
	// changedSources are those of another state than before the last evaluation.
	changedSources []*source
}

// namespaces are those to watch; none means all of them.
type namespaces []string

const notWatched = "the namespace is not watched"

// outside reports whether a namespace is not watched: changes in it would not be seen.
func (n namespaces) outside(namespace string) bool {
	return len(n) > 0 && !slices.Contains(n, namespace)
}

// start watches each resource, until the context ends or stop is called.
func (s *sources) start(ctx context.Context, schema *referent.Schema) {
	s.lifetime.begin(ctx)
	for _, resource := range schema.Resources() {
		in := s.namespaces
		if len(in) == 0 || resource.ClusterScoped {
			in = namespaces{""}
		}
		for _, namespace := range in {
			one := &source{
				with: s, resource: resource, namespace: namespace, latest: latest{most: s.mostReferences},
				known: map[referent.Key]struct{}{}, pause: firstPause,
			}
			s.all = append(s.all, one)
			one.start() //nolint:contextcheck // it has that of the lifetime
		}
	}
}

// stop ends the watches, and all else of the configuration.
func (s *sources) stop() {
	for _, one := range s.all {
		one.ended.Store(true)
	}
	s.lifetime.end()
	s.all = nil
}

// none reports whether nothing is watched.
func (s *sources) none() bool { return len(s.all) == 0 }

// answered reports whether each of them knows what there is, or that it may not.
func (s *sources) answered() bool {
	return !slices.ContainsFunc(s.all, func(one *source) bool { return one.state == referent.SourceUnsynced })
}

// fill gives a new graph all that the watches have delivered.
func (s *sources) fill(graph *referent.Graph) {
	for _, one := range s.all {
		one.fill(graph)
	}
}

// keys are the objects in the graph.
func (s *sources) keys(yield func(referent.Key) bool) {
	for _, one := range s.all {
		for key := range one.known {
			if !yield(key) {
				return
			}
		}
	}
}

// stored returns an object as a watch has delivered it; nil if none has.
func (s *sources) stored(key referent.Key) *unstructured.Unstructured {
	for _, one := range s.all {
		if one.resource.GVR.GroupResource() != key.GroupResource() || one.bulk == nil {
			continue
		}
		if object := one.bulk.Store().Object(key.Namespace, key.Name); object != nil {
			return object
		}
	}
	return nil
}

// identified returns what identifies an object and its version, as a watch has delivered it; nil if none has.
func (s *sources) identified(key referent.Key) *unstructured.Unstructured {
	stored := s.stored(key)
	if stored == nil {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(stored.GroupVersionKind())
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetUID(stored.GetUID())
	object.SetResourceVersion(stored.GetResourceVersion())
	return object
}

// takeChangedSources returns what is held that the graph does not have, of the sources whose state is another one than before: with that,
// the reason is another one.
func (s *sources) takeChangedSources(graph *referent.Graph, held map[referent.Key]time.Time) []referent.Change {
	var changes []referent.Change
	for _, one := range s.changedSources {
		for key := range held {
			if one.has(key) && !graph.Has(key) {
				changes = append(changes, referent.Change{Key: key, Held: true})
			}
		}
	}
	s.changedSources = nil
	slices.SortFunc(changes, func(a, b referent.Change) int { return a.Key.Compare(b.Key) })
	return changes
}

const (
	// firstPause is how long a watch must have worked to be made again at once when it fails. With each one that fails, the pause
	// doubles, up to longestPause; a watch that has worked that long begins with the first one again. Where the permission to list is there
	// and the permission to watch is not, each watch syncs and fails at once.
	firstPause, longestPause = time.Second, time.Minute
)

// restart makes again the watches that had synced and fail now, those that have left out references or are behind, and those whose pause is
// over.
func (s *sources) restart(p pending) {
	for _, one := range p.restarts {
		if !one.stopped() {
			s.replace(one)
		}
	}
	for _, one := range slices.Concat(p.incomplete, failing(p.changes), s.behind(p.found)) {
		if !one.stopped() && !one.waiting {
			s.replacePaced(one)
		}
	}
}

// failing returns the sources that had synced and fail now. A watch that has not synced yet tries by itself.
func failing(changes []change) (all []*source) {
	for _, change := range changes {
		failed, ok := change.(sourceChange)
		if !ok || failed.state == referent.SourceSynced {
			continue
		}
		if one := failed.source; one.bulk != nil && one.bulk.IsSynced() {
			all = append(all, one)
		}
	}
	return all
}

// replacePaced replaces a source that has failed or is incomplete, at once or after its pause.
func (s *sources) replacePaced(one *source) {
	worked, pause := s.now().Sub(one.began), one.pause
	if one.pause = min(2*pause, longestPause); worked >= longestPause {
		one.pause = firstPause
	}
	if worked >= pause {
		s.replace(one)
		return
	}
	one.waiting = true
	s.inbox.gatherAfter(pause-worked, func(p *pending) { p.restarts = append(p.restarts, one) })
}

// relist replaces the source whose list was refused.
func (s *sources) relist(list referent.Key, refused time.Time) {
	at := slices.IndexFunc(s.all, func(one *source) bool { return one.listed() == list })
	if at >= 0 && !s.all[at].began.After(refused) { // else its list has not been answered yet
		s.replace(s.all[at])
	}
}

// replace puts a source that watches again in the place of another one. That ends some time later: what its goroutines still deliver is
// older, and the next watch does not deliver it again.
func (s *sources) replace(one *source) {
	one.ended.Store(true)
	one.cancel()
	next := &source{
		with: s, resource: one.resource, namespace: one.namespace, latest: latest{most: s.mostReferences},
		state: one.state, known: one.known, pause: one.pause,
	}
	s.all[slices.Index(s.all, one)] = next
	next.start()
}
