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
func (r *reader) listLive(ctx context.Context, by *lanes, namespace string, refs []reference.Ref) map[reference.Kind]map[string]listed {
	if len(refs) < listFrom {
		return nil
	}
	var mu sync.Mutex
	var reading sync.WaitGroup
	lists := make(map[reference.Kind]map[string]listed)
	for _, kind := range reference.Kinds() {
		if !r.worthListing(namespace, kind, refs) {
			continue
		}
		key := scopeKey{kind, namespace}
		reading.Go(func() {
			versions, err := by.lists.Do(ctx, key, func(ctx context.Context) (map[string]listed, error) {
				return r.readVersions(ctx, key)
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
func (r *reader) worthListing(namespace string, kind reference.Kind, refs []reference.Ref) bool {
	keys, reads, unknown := r.ring().Keys(), 0, make([]string, 0, len(refs))
	for _, ref := range refs {
		if ref.Kind != kind {
			continue
		}
		k := objectKey{namespace, ref}
		if known, ok := r.digests.get(k, keys); !ok {
			unknown = append(unknown, ref.Name)
		} else if !r.metadata.outdates(k, known) {
			reads++
		}
	}
	all, absent, known := r.metadata.count(scopeKey{kind, namespace}, unknown)
	if !known {
		return false // nor is how long the list would be
	}
	reads += absent
	return reads >= listFrom && all <= listShare*reads
}

// readVersions reads the versions of all objects of a kind in a namespace, by name.
func (r *reader) readVersions(ctx context.Context, key scopeKey) (map[string]listed, error) {
	// In a namespace that is watched, it would count as a list of the watch.
	list, err := r.client.list(watchhealth.Unwatched(ctx), key.kind, key.namespace, metav1.ListOptions{}, wire.Keep{})
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
func (r *reader) atVersion(k objectKey, versions map[string]listed) (digest.State, bool) {
	found, exists := versions[k.ref.Name]
	if !exists {
		r.absent(k)
		return digest.State{Absent: true}, true
	}
	keys := r.ring().Keys()
	state, ok := r.digests.at(k, found.uid, found.resourceVersion, keys)
	if !ok || len(keys) == 0 {
		return digest.State{}, false
	}
	return state, true
}
