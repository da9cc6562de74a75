package webhook_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/annotation"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
	"github.com/pod-reloader/pod-reloader/webhook"
)

// shortNames returns as many different names, each as short as possible.
func shortNames(count int) []string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	names := make([]string, 0, count)
	for i := range count {
		name := string(letters[i%len(letters)])
		if i >= len(letters) {
			name = string(letters[i/len(letters)-1]) + name
		}
		names = append(names, name)
	}
	return names
}

// creating returns a review of a new Deployment of some namespace with an annotation and a pod spec.
func creating(namespace, key, value, podSpec string) []byte {
	body := review(fmt.Sprintf(`"operation":"CREATE","object":{"metadata":{"annotations":{%q:%q}},"spec":{"template":{"spec":{%s}}}}`, key, value, podSpec))
	return []byte(strings.Replace(body, `"namespace":"shop"`, `"namespace":"`+namespace+`"`, 1))
}

// tracking returns reviews of some 3 to 30 KiB, each of a workload that tracks 1,000 objects.
func tracking(t *testing.T) map[string]func(namespace string) []byte {
	t.Helper()
	names := shortNames(reference.MaxTracked)
	var mounted strings.Builder
	for _, name := range names {
		fmt.Fprintf(&mounted, `{"configMap":{"name":%q}},`, name)
	}
	podSpec := `"volumes":[{"projected":{"sources":[` + strings.TrimSuffix(mounted.String(), ",") + `]}}]`
	return map[string]func(namespace string) []byte{
		"names": func(namespace string) []byte {
			return creating(namespace, annotation.DefaultKeys().ConfigMaps, strings.Join(names, ","), "")
		},
		"an expression": func(namespace string) []byte {
			return creating(namespace, "configmap.reloader.stakater.com/reload", ".*", "")
		},
		"a pod spec": func(namespace string) []byte {
			return creating(namespace, "reloader.stakater.com/auto", "true", podSpec)
		},
	}
}

// knowing lets the handler know 1,000 ConfigMaps in each namespace, and the annotations of Reloader.
func knowing(o *webhook.Options) {
	hastily(o)
	objects := annotation.Listed{}
	for _, name := range shortNames(reference.MaxTracked) {
		objects[reference.Ref{Kind: reference.ConfigMap, Name: name}] = annotation.Traits{}
	}
	o.Reader.Dialects = append(o.Reader.Dialects, annotation.Stakater{Keys: annotation.NewStakaterKeys()})
	o.Reader.Objects = func(string) (annotation.Objects, error) { return objects, nil }
}

func liveHeap() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// Small reviews that ask for many objects do not fill the memory: what a review tracks counts, however short its text is.
//
//nolint:paralleltest // it measures the memory of the process
func TestReviewsOfManyObjectsAreBounded(t *testing.T) {
	unraced.Test(t)
	most := map[string]int{"names": 64 << 20, "an expression": 64 << 20, "a pod spec": 180 << 20} // of the last, most is the decoded text
	for name, body := range tracking(t) {
		t.Run(name, func(t *testing.T) { assert.Less(t, heapOfReviews(t, 150, 1, body), most[name]) })
	}
}

// heapOfReviews returns by how much the heap grows while so many reviews of 8 namespaces are decided or wait, by a handler that has one of
// so many parts of the memory.
func heapOfReviews(t *testing.T, reviews, parts int, body func(namespace string) []byte) (grown int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var inFlight atomic.Int64
		w.before = func(ctx context.Context, _ string) {
			states := make(map[reference.Ref]digest.State, reference.MaxTracked) // as configstate has them
			inFlight.Add(1)
			<-ctx.Done()
			runtime.KeepAlive(states)
		}
		s := newHandler(t, w, knowing, logr.Discard())
		s.handler.Divide(parts)
		bodies := make([][]byte, 8)
		for i := range bodies {
			bodies[i] = body(fmt.Sprintf("tenant-%d", i))
		}
		before := liveHeap()
		var running sync.WaitGroup
		for i := range reviews {
			running.Go(func() { post(s.handler, bodies[i%len(bodies)]) })
		}
		synctest.Wait()
		grown = liveHeap() - before
		t.Logf("%d reviews read; %d MiB", inFlight.Load(), grown>>20)
		require.Positive(t, inFlight.Load())
		running.Wait()
	})
	return grown
}

// Only reviews of many objects wait for each other, and those of one namespace leave a part to the others.
func TestReviewsOfManyObjectsDelayOnlyThoseOfTheirNamespace(t *testing.T) {
	t.Parallel()
	for name, body := range tracking(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var inFlight atomic.Int64
				w.before = func(ctx context.Context, namespace string) {
					if namespace == "big" {
						inFlight.Add(1)
						<-ctx.Done()
					}
				}
				s := newHandler(t, w, knowing, logr.Discard())
				var running sync.WaitGroup
				for range 50 {
					running.Go(func() { post(s.handler, body("big")) })
				}
				synctest.Wait()
				assert.Equal(t, int64(24), inFlight.Load(), "24,576 objects")
				began := time.Now()
				for range 2 {
					assert.Contains(t, string(responseOf(t, post(s.handler, body("small"))).Patch), "config-hash")
				}
				running.Go(func() { post(s.handler, large("big", 0)) })
				synctest.Wait()
				assert.Equal(t, int64(25), inFlight.Load(), "a review of one object")
				assert.Zero(t, time.Since(began), "nothing of that waits")
				running.Wait()
				assert.Equal(t, 2, decisions(t, s, "create", "stamped"))
				assert.Contains(t, string(responseOf(t, post(s.handler, body("small"))).Patch), "config-hash", "what was taken is given back")
			})
		})
	}
}

// A write of an excluded workload needs no read, whatever it names: it does not wait for the reads of others.
func TestReviewThatReadsNothingDoesNotWaitForReads(t *testing.T) {
	t.Parallel()
	for name, body := range tracking(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.before = func(ctx context.Context, _ string) { <-ctx.Done() }
				s := newHandler(t, w, knowing, logr.Discard())
				var running sync.WaitGroup
				for range 50 {
					running.Go(func() { post(s.handler, body("shop")) })
				}
				synctest.Wait()
				began := time.Now()
				excluded := bytes.Replace(body("shop"), []byte(`"annotations"`), []byte(`"labels":{"pod-reloader.cs.sap.com/ignored":"true"},"annotations"`), 1)
				assert.Empty(t, responseOf(t, post(s.handler, excluded)).Warnings)
				assert.Zero(t, time.Since(began))
				assert.Equal(t, 1, decisions(t, s, "excluded", "unchanged"))
				running.Wait()
				assert.Equal(t, 50, decisions(t, s, "create", "unread"), "also those that did not get a turn")
			})
		})
	}
}
