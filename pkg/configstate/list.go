package configstate

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/configstate/internal/wire"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// The metadata of listFrom objects or more of a kind is read as one list, if their namespace has at most listShare times
// as many: the API server takes longer for a request than for some further objects in a response.
const (
	listFrom  = 16
	listShare = 4
)

// listed is what the metadata of one object says of its content.
type listed struct{ uid, resourceVersion string }

// listLive lists the metadata of the kinds of which refs name many objects, as it is stored now. Kinds that it leaves out
// are read object by object, also where the list failed: single objects may be allowed where lists are not.
func (s *Store) listLive(ctx context.Context, by *lanes, namespace string, refs []reference.Ref) map[reference.Kind]map[string]listed {
	if len(refs) < listFrom {
		return nil
	}
	var mu sync.Mutex
	var reading sync.WaitGroup
	lists := make(map[reference.Kind]map[string]listed)
	for _, kind := range reference.Kinds() {
		if !s.worthListing(namespace, kind, refs) {
			continue
		}
		key := scopeKey{kind, namespace}
		reading.Go(func() {
			versions, err := by.lists.Do(ctx, key, func(ctx context.Context) (map[string]listed, error) {
				return s.readVersions(ctx, key)
			})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				lists[kind] = versions
			}
		})
	}
	reading.Wait()
	return lists
}

// worthListing reports whether one list takes less than the reads that it replaces. An object that must be read itself, whatever its
// metadata says, does not count; one that the watch does not show does: the list says that it is absent.
func (s *Store) worthListing(namespace string, kind reference.Kind, refs []reference.Ref) bool {
	keys, reads, unknown := s.ring().Keys(), 0, make([]string, 0, len(refs))
	for _, ref := range refs {
		if ref.Kind != kind {
			continue
		}
		k := objectKey{namespace, ref}
		if known, ok := s.digests.get(k, keys); !ok {
			unknown = append(unknown, ref.Name)
		} else if !s.outdated(k, known) {
			reads++
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if w := s.watcherOf(objectKey{namespace, reference.Ref{Kind: kind}}); w == nil || !s.status[w].synced {
		return false // how long the list would be is not known
	}
	objects := s.objects[scopeKey{kind, namespace}]
	for _, name := range unknown {
		if _, exists := objects[name]; !exists {
			reads++
		}
	}
	return reads >= listFrom && len(objects) <= listShare*reads
}

// readVersions reads the versions of all objects of a kind in a namespace, by name.
func (s *Store) readVersions(ctx context.Context, key scopeKey) (map[string]listed, error) {
	// In a namespace that is watched, it would count as a list of the watch.
	list, err := s.client.list(watchhealth.Unwatched(ctx), key.kind, key.namespace, metav1.ListOptions{}, wire.Keep{})
	if err != nil {
		return nil, err
	}
	if list.Continue != "" {
		return nil, errors.New("the list is not complete")
	}
	versions := make(map[string]listed, len(list.Items))
	for _, item := range list.Items {
		versions[item.Name] = listed{item.UID, item.ResourceVersion}
	}
	return versions, nil
}

// atVersion returns the state of an object whose kind was listed; false if its content must be read.
func (s *Store) atVersion(k objectKey, versions map[string]listed) (digest.State, bool) {
	found, exists := versions[k.ref.Name]
	if !exists {
		s.absent(k)
		return digest.State{Absent: true}, true
	}
	keys := s.ring().Keys()
	state, ok := s.digests.at(k, found.uid, found.resourceVersion, keys)
	if !ok || len(keys) == 0 {
		return digest.State{}, false
	}
	return state, true
}
