package configstate

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// newCache returns a metadata cache with one watch, of ConfigMaps, and the events that it reports.
func newCache() (c *metadataCache, w *watcher, events *[]EventType) {
	w, events = &watcher{kind: reference.ConfigMap}, new([]EventType)
	ws, n := watches{{kind: reference.ConfigMap}: w}, &notifier{now: time.Now}
	n.add(func(e Event) { *events = append(*events, e.Type) })
	return newMetadataCache(ws, newDigests(10), newSyncProgress(ws), n), w, events
}

func configMapMeta(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid"), ResourceVersion: version,
	}}
}

func TestWatchEventReplacesOlderRead(t *testing.T) {
	t.Parallel()
	c, w, events := newCache()
	k := numbered(1)
	c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("1", "1")})

	from := c.beforeRead(w)
	c.put(w, configMapMeta("1", "3"), origin{})
	c.put(w, configMapMeta("1", "2"), from)
	c.remove(w, configMapMeta("1", "2"), from)
	o, _ := c.get(k)
	assert.Equal(t, "3", o.resourceVersion, "the read began before the watch delivered version 3")
	assert.Equal(t, []EventType{Added, Modified}, *events, "the read is no event")

	from = c.beforeRead(w)
	other := c.beforeRead(w)
	c.put(w, configMapMeta("2", "4"), other)
	c.remove(w, configMapMeta("1", "3"), from)
	_, exists := c.get(k)
	assert.False(t, exists, "the read of another object does not outdate this one")
	assert.Equal(t, []string{"2"}, c.names(scopeKey{reference.ConfigMap, "shop"}))
	assert.Equal(t, []EventType{Added, Modified, Added, Deleted}, *events)
}

func TestCountOfConfigObjects(t *testing.T) {
	t.Parallel()
	c, w, _ := newCache()
	_, _, known := c.count(scopeKey{reference.ConfigMap, "shop"}, nil)
	assert.False(t, known, "before the first listing")
	c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("1", "1"), configMapMeta("2", "1")})
	all, absent, known := c.count(scopeKey{reference.ConfigMap, "shop"}, []string{"2", "3", "4"})
	assert.Equal(t, []any{2, 2, true}, []any{all, absent, known})
	_, _, known = c.count(scopeKey{reference.Secret, "shop"}, nil)
	assert.False(t, known, "a kind without a watch")
}

func TestListingReplacesWhatItsWatchDelivered(t *testing.T) {
	t.Parallel()
	c, w, events := newCache()
	scoped, secrets := &watcher{kind: reference.ConfigMap, namespace: "shop"}, &watcher{kind: reference.Secret}
	c.put(secrets, configMapMeta("1", "1"), origin{})
	for n := range 100 {
		other := configMapMeta("1", "1")
		other.Namespace = fmt.Sprint("ns-", n)
		c.put(w, other, origin{})
	}
	c.put(w, configMapMeta("1", "1"), origin{})
	*events = nil

	c.replace(scoped, nil)
	assert.Equal(t, []EventType{Deleted}, *events)
	assert.Empty(t, c.names(scopeKey{reference.ConfigMap, "shop"}))
	c.replace(w, nil)
	assert.Len(t, *events, 101, "a watch of all namespaces")
	assert.NotEmpty(t, c.names(scopeKey{reference.Secret, "shop"}), "another kind")
}

// After the restore of a backup, an object can get another content at a version that was read before.
func TestListingForgetsContentOfAnotherVersion(t *testing.T) {
	t.Parallel()
	c, w, _ := newCache()
	ring := []digest.Key{{ID: "a"}}
	known := func(n int, at string) bool {
		_, ok := c.digests.at(numbered(n), "uid", at, ring)
		return ok
	}
	c.digests.put(numbered(1), version("9", "a"))
	c.digests.put(numbered(2), version("3", "a"))
	c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("1", "9"), configMapMeta("2", "3")})
	assert.True(t, known(1, "9"), "it was read before the first listing")

	c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("1", "5"), configMapMeta("2", "3")})
	c.put(w, configMapMeta("1", "9"), origin{})
	assert.False(t, known(1, "9"), "the listing had an earlier version of it")
	assert.True(t, known(2, "3"), "it is the same")

	c.digests.put(numbered(2), version("8", "a"))
	c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("1", "9"), configMapMeta("2", "3")})
	assert.False(t, known(2, "8"), "it was read ahead of the watch, which has seen no change")
}

func TestFirstListingEndsWhatWasOnlyRead(t *testing.T) {
	t.Parallel()
	c, w, _ := newCache()
	var gone []string
	c.events.add(func(e Event) {
		if e.Type == Deleted {
			gone = append(gone, e.Namespace+" "+e.Ref.String())
		}
	})
	scoped := &watcher{kind: reference.ConfigMap, namespace: "shop"}
	read := func(namespace string, kind reference.Kind, name string) {
		c.digests.put(objectKey{namespace, reference.Ref{Kind: kind, Name: name}}, digest.State{UID: "uid", ResourceVersion: "1"})
	}
	read("shop", reference.ConfigMap, "listed")
	read("shop", reference.ConfigMap, "read")
	read("shop", reference.ConfigMap, "rechecked")
	read("pay", reference.ConfigMap, "read")
	read("shop", reference.Secret, "read")
	c.put(scoped, configMapMeta("rechecked", "1"), c.beforeRead(scoped))

	listing := []*metav1.PartialObjectMetadata{configMapMeta("listed", "1")}
	c.replace(scoped, listing)
	assert.ElementsMatch(t, []string{"shop configmap/read", "shop configmap/rechecked"}, gone)
	gone = nil
	c.replace(w, listing)
	assert.Equal(t, []string{"pay configmap/read"}, gone, "a watch of all namespaces")
}

func TestObservedState(t *testing.T) {
	t.Parallel()
	c, w, _ := newCache()
	c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("1", "1")})
	k := numbered(1)
	c.digests.put(k, version("1", "a"))
	states := map[reference.Ref]digest.State{}
	c.observe(states, "shop", []reference.Ref{classOf("shop", "vault").ref, k.ref}, nil)
	assert.Equal(t, map[reference.Ref]digest.State{k.ref: {UID: "uid", ResourceVersion: "1"}}, states,
		"without a key there are no Entries, and the content of a class is elsewhere")
}

// The states of several objects are of one moment: an object that was renamed is seen under one of its names.
func TestObservedStatesAreOfOneMoment(t *testing.T) {
	t.Parallel()
	c, w, _ := newCache()
	refs := []reference.Ref{numbered(0).ref, numbered(1).ref}
	c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("0", "1")})
	done := make(chan struct{})
	var renaming sync.WaitGroup
	renaming.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			default:
				c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta(fmt.Sprint(n%2), "1")})
			}
		}
	})
	for range 1_000 {
		states := map[reference.Ref]digest.State{}
		c.observe(states, "shop", refs, nil)
		if !assert.NotEqual(t, states[refs[0]].Absent, states[refs[1]].Absent, "exactly one of the two names exists") {
			break
		}
	}
	close(done)
	renaming.Wait()
}
