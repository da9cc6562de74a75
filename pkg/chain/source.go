package chain

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/watch"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// source is one resource in one namespace, or in all of them. Another one takes its place when it may not be read any more, or is
// not served any more: only a first list says for certain what there is when it is back.
type source struct {
	with      *sources
	resource  *referent.Resource
	namespace string
	bulk      *watch.Bulk
	cancel    context.CancelFunc
	ended     atomic.Bool
	// misplaced: the objects have a namespace although the configuration says that they have none, or the other way round.
	misplaced atomic.Bool
	// latest has what counts of each object; of the object itself, the watch keeps the name only.
	latest latest

	// The evaluator alone uses the others.

	state referent.Source
	// failure is why the objects have not been read yet; empty if nothing has failed.
	failure string
	// failing is since when the list fails in another way than the refusal that is the state; zero if it does not.
	failing time.Time
	// began is when the first list was sent.
	began time.Time
	// pause is how long the source must have worked to be replaced at once when it fails, and that of the next one from then on.
	pause time.Duration
	// waiting: it fails, and is replaced when the pause is over.
	waiting bool
	// known are the objects in the graph.
	known map[referent.Key]struct{}
}

func (s *source) stopped() bool { return s.ended.Load() }

// start begins a watch. What it delivers is applied in its order.
func (s *source) start() {
	ctx, cancel := context.WithCancel(largeread.RefusePages(watchhealth.NewClient(s.with.lifetime.ctx)))
	s.cancel = cancel
	s.began = s.with.now()
	bulk, err := watch.NewBulk(watch.Config{
		GVR: s.resource.GVR, Namespace: s.namespace, IndexBy: []string{"metadata.name"},
		Transform: s.reduce,
		OnObject:  s.deliver,
		OnSyncComplete: func(context.Context, watch.Reader, int) error {
			s.with.inbox.gather(func(p *pending) { p.changes = append(p.changes, sourceChange{source: s, state: referent.SourceSynced}) })
			time.AfterFunc(firstPause, s.dropUnlisted) // what is still on its way now is delivered by then
			return nil
		},
		OnWatchError:     s.failed,
		TooLarge:         func(err error) bool { return errors.Is(err, largeread.ErrLarge) },
		DebounceInterval: time.Second, // there is no OnChange
		Logger:           s.with.log.V(1),
	}, s.with.client)
	if err != nil {
		s.with.log.Error(err, "cannot watch a custom resource", "resource", s.resource.String())
		return
	}
	s.bulk = bulk
	s.with.lifetime.run(func(context.Context) { _ = bulk.Start(ctx) }) // it retries by itself
}

// reduce reads an object and leaves of it what identifies it: objects of any size and number must not fill the memory.
func (s *source) reduce(object *unstructured.Unstructured) {
	kept, changed := s.latest.set(object.GetUID(), s.resource.Read(object))
	if changed && s.delivered(object) {
		change := objectChange{source: s, key: kept.Key(), object: kept}
		s.with.inbox.gather(func(p *pending) { p.changes = append(p.changes, change) })
	}
	s.listAnew(kept.Key().Namespace)
	if misplaced := (object.GetNamespace() == "") != s.resource.ClusterScoped; s.misplaced.CompareAndSwap(!misplaced, misplaced) {
		s.with.inbox.gather(func(p *pending) { p.changes = append(p.changes, scopeChange{s}) })
	}
	bare := &unstructured.Unstructured{Object: map[string]any{}}
	bare.SetAPIVersion(object.GetAPIVersion())
	bare.SetKind(object.GetKind())
	bare.SetNamespace(object.GetNamespace())
	bare.SetName(object.GetName())
	bare.SetUID(object.GetUID())
	bare.SetResourceVersion(object.GetResourceVersion())
	object.Object = bare.Object
}

// listAnew has all objects read again when references of a namespace are left out that could be kept now.
func (s *source) listAnew(namespace string) {
	if s.latest.fits(namespace) {
		s.with.inbox.gather(func(p *pending) { p.incomplete = append(p.incomplete, s) })
	}
}

// dropUnlisted has all objects read again by another source if this one has some that were never delivered: a list that broke off has read
// them, so that no event of their deletion comes.
func (s *source) dropUnlisted() {
	if s.latest.len() > s.bulk.Store().Len() {
		s.with.inbox.gather(func(p *pending) { p.incomplete = append(p.incomplete, s) })
	}
}

// delivered reports whether the watch has delivered this version of an object. It does not deliver it again. The content of a version
// changes where a definition gets another default, or its conversion another rule.
func (s *source) delivered(object *unstructured.Unstructured) bool {
	stored := s.bulk.Store().Object(object.GetNamespace(), object.GetName())
	return stored != nil && stored.GetUID() == object.GetUID() && stored.GetResourceVersion() == object.GetResourceVersion()
}

// deliver is called for each object, by the goroutine of the watch. A later state than the one of the event may have been read
// already: then it is delivered twice.
func (s *source) deliver(before, now *unstructured.Unstructured) {
	o := objectChange{source: s}
	if now == nil {
		o.key = s.resource.Key(before.GetNamespace(), before.GetName())
		s.latest.drop(o.key, before.GetUID())
		s.listAnew(o.key.Namespace)
	} else {
		o.key = s.resource.Key(now.GetNamespace(), now.GetName())
		o.object = s.latest.get(o.key)
		if o.object == nil {
			return // it has been deleted since
		}
	}
	s.with.inbox.gather(func(p *pending) { p.changes = append(p.changes, o) })
}

// failed is called for each failure of list or watch. Other failures than these leave what is known of the objects: what a watch
// misses meanwhile, it delivers later. Before the first list, they say why nothing is known.
func (s *source) failed(_ context.Context, err error) {
	state := referent.SourceNotInstalled
	switch {
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		state = referent.SourceForbidden
	case s.bulk.IsSynced():
		time.AfterFunc(longestPause, s.dropUnlisted) // mostly, another list was complete by then
		return
	default:
		s.with.inbox.gather(func(p *pending) {
			p.changes = append(p.changes, sourceFailure{s, reference.Cut(err.Error(), maxErrorText)})
		})
		return
	}
	change := sourceChange{s, state, s.with.now()}
	s.with.inbox.gather(func(p *pending) { p.changes = append(p.changes, change) })
}

// sourceChange is what is known of a source now, and when the API server refused it; zero if it did not.
type sourceChange struct {
	source  *source
	state   referent.Source
	refused time.Time
}

func (c sourceChange) apply(graph *referent.Graph, refused refusals) {
	s := c.source
	if s.stopped() {
		return
	}
	before := s.state
	s.state, s.failing = c.state, time.Time{}
	if s.state == referent.SourceSynced && s.misplaced.Load() {
		s.state = referent.SourceOtherScope
	}
	if s.state != before {
		s.with.changedSources = append(s.with.changedSources, s)
	}
	if graph == nil {
		return
	}
	refused.set(s.listed(), c.refused)
	if c.state == referent.SourceSynced {
		s.forgetGone(graph)
	}
	s.set(graph)
}

// sourceFailure is why the first list of a source has failed. It takes the place of an earlier refusal where it lasts: a failure that
// comes and goes must not change the reason again and again.
type sourceFailure struct {
	source *source
	text   string
}

func (f sourceFailure) apply(graph *referent.Graph, refused refusals) {
	s := f.source
	if s.stopped() {
		return
	}
	switch s.state {
	case referent.SourceSynced, referent.SourceOtherScope, referent.SourceOutside:
		return
	case referent.SourceForbidden, referent.SourceNotInstalled:
		now := s.with.now()
		if s.failing.IsZero() {
			s.failing = now
		}
		if now.Sub(s.failing) < digest.ReportHoldAfter {
			return
		}
	case referent.SourceUnsynced:
	}
	s.failure = f.text
	sourceChange{source: s, state: referent.SourceUnsynced}.apply(graph, refused)
}

// scopeChange is an object of another scope than those before: the configuration is wrong, or the definition was made again.
type scopeChange struct{ source *source }

func (c scopeChange) apply(graph *referent.Graph, refused refusals) {
	if state := c.source.state; state == referent.SourceSynced || state == referent.SourceOtherScope {
		sourceChange{source: c.source, state: referent.SourceSynced}.apply(graph, refused)
	}
}

// set gives a graph the state of the source.
func (s *source) set(graph *referent.Graph) {
	if s.state == referent.SourceUnsynced {
		graph.SetUnsynced(s.resource, s.namespace, s.failure)
	} else {
		graph.SetSource(s.resource, s.namespace, s.state)
	}
}

// forgetGone deletes what an earlier watch has delivered and this one has not found.
func (s *source) forgetGone(graph *referent.Graph) {
	for key := range s.known {
		if s.bulk.Store().Object(key.Namespace, key.Name) == nil {
			delete(s.known, key)
			graph.Delete(key)
		}
	}
}

// fill gives a new graph all that the watch has delivered. What it has delivered and is still pending is applied again. The objects of an
// earlier watch are not in it, whatever that knew of them: until this one has listed them, the graph is not complete.
func (s *source) fill(graph *referent.Graph) {
	if s.state == referent.SourceSynced && (s.bulk == nil || !s.bulk.IsSynced()) {
		s.state = referent.SourceUnsynced
	}
	s.set(graph)
	if s.bulk == nil {
		return
	}
	for _, object := range s.bulk.Store().List() {
		key := s.resource.Key(object.GetNamespace(), object.GetName())
		if read := s.latest.get(key); read != nil {
			s.known[key] = struct{}{}
			graph.Put(read)
		}
	}
}

// has reports whether an object would come from the source.
func (s *source) has(key referent.Key) bool {
	return key.GroupResource() == s.resource.GVR.GroupResource() && (s.namespace == "" || s.namespace == key.Namespace)
}

// listed names the list of a source.
func (s *source) listed() referent.Key { return s.resource.Key(s.namespace, "") }
