package chain

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// liveObject is a custom resource as a live read has found it; only the key is set if there is none.
type liveObject struct {
	key     referent.Key
	object  *referent.Object
	uid     types.UID
	version string
}

// watchedConfig reads ConfigMaps and Secrets live, and takes in what a watch has not delivered; configstate.Store does.
type watchedConfig interface {
	configReader
	Cached(namespace string, refs []reference.Ref) map[reference.Ref]digest.State
	Recheck(ctx context.Context, namespace string, ref reference.Ref) error
}

// recheck reads a custom resource live, and has its watch make up for what it has not delivered. That lists all objects again: those of a
// graph are those of one list and of the watch behind it. What is below the resource is read by itself, where its watch fails.
func (l *liveReader) recheck(ctx context.Context, namespace string, ref reference.Ref) error {
	_, key, _ := l.graphState.state(namespace, ref)
	object, err := l.object(ctx, key)
	if err != nil {
		return err
	}
	l.inbox.gather(func(p *pending) { p.found = append(p.found, object) })
	return nil
}

// recheckBelow is recheck with all that is below the resource, config objects included.
func (l *liveReader) recheckBelow(ctx context.Context, config watchedConfig, namespace string, ref reference.Ref) error {
	f, err := l.begin(config, namespace, []reference.Ref{ref})
	if err == nil {
		err = f.follow(ctx)
	}
	if err != nil {
		return err
	}
	l.inbox.gather(func(p *pending) { p.found = append(p.found, f.found...) })
	var failed []error
	for namespace, states := range f.states {
		known := config.Cached(namespace, slices.Collect(maps.Keys(states)))
		for ref, read := range states {
			if seen, watched := known[ref]; watched && !seen.SameVersion(read) {
				failed = append(failed, config.Recheck(ctx, namespace, ref))
			}
		}
	}
	return errors.Join(failed...)
}

// behind returns the sources of which a live read has found later versions than the watch has delivered. One that has not synced yet is
// going to list them.
func (s *sources) behind(found []liveObject) (all []*source) {
	for _, object := range found {
		for _, one := range s.all {
			if one.has(object.key) && one.bulk != nil && one.bulk.IsSynced() && one.lacks(object) {
				all = append(all, one)
			}
		}
	}
	return all
}

// lacks reports whether the watch has not delivered what a live read has found, and no later version.
func (s *source) lacks(found liveObject) bool {
	stored := s.bulk.Store().Object(found.key.Namespace, found.key.Name)
	if stored == nil {
		return found.object != nil
	}
	return stored.GetUID() != found.uid || reference.Later(found.version, stored.GetResourceVersion())
}
