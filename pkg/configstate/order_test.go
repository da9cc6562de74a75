package configstate

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// An index of the objects that exist is kept up to date by their events alone: it must not differ from the cache when all are reported,
// although a read and the watch deliver at the same time.
func TestLastEventOfAnObjectSaysWhetherItExists(t *testing.T) {
	t.Parallel()
	object := configMapMeta("1", "2")
	for name, tc := range map[string]struct {
		deliver, meanwhile func(c *metadataCache, w *watcher)
	}{
		"a read finds what a listing lacks": {
			func(c *metadataCache, w *watcher) {
				c.replace(w, []*metav1.PartialObjectMetadata{configMapMeta("2", "3")})
			},
			func(c *metadataCache, w *watcher) { c.put(w, object, c.beforeRead(w)) },
		},
		"a listing has what a read lacked": {
			func(c *metadataCache, w *watcher) { c.remove(w, object, c.beforeRead(w)) },
			func(c *metadataCache, w *watcher) { c.replace(w, []*metav1.PartialObjectMetadata{object}) },
		},
		"the watch delivers the end of what a read has found": {
			func(c *metadataCache, w *watcher) { c.put(w, configMapMeta("1", "3"), c.beforeRead(w)) },
			func(c *metadataCache, w *watcher) { c.remove(w, object, origin{}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w, _ := newCache()
			c.replace(w, []*metav1.PartialObjectMetadata{object})
			var reported atomic.Bool
			var deliveries sync.WaitGroup
			var mu sync.Mutex
			exists := map[string]bool{object.Name: true}
			c.events.add(func(e Event) {
				if !reported.Swap(true) {
					done := make(chan struct{})
					deliveries.Go(func() {
						defer close(done)
						tc.meanwhile(c, w)
					})
					select {
					case <-done:
					case <-time.After(50 * time.Millisecond): // it waits for this event
					}
				}
				mu.Lock()
				defer mu.Unlock()
				exists[e.Ref.Name] = e.Type != Deleted
			})
			tc.deliver(c, w)
			deliveries.Wait()
			for name, has := range exists {
				_, known := c.get(objectKey{"shop", reference.Ref{Kind: reference.ConfigMap, Name: name}})
				assert.Equal(t, known, has, name)
			}
		})
	}
}
