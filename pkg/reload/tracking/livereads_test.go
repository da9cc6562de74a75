package tracking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// slowReader is an API server whose answers take a while. It counts the reads, by name, and how many were in flight at a time.
type slowReader struct {
	liveReader

	mu             sync.Mutex
	takes          time.Duration
	inFlight, most int
	read           map[string]int
}

func (r *slowReader) answersAfter(takes time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = takes
}

func (r *slowReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	r.mu.Lock()
	r.inFlight++
	r.most = max(r.most, r.inFlight)
	r.read[key.Name]++
	takes := r.takes
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.inFlight--
	}()
	if takes > 0 { // a timer of no duration can break the race detector of Go 1.26
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(takes):
		}
	}
	return r.liveReader.Get(ctx, key, object, opts...)
}

// crowd adds workloads to the index.
func crowd(l *fixture, like workload.Key, n int) []workload.Key {
	var keys []workload.Key
	for i := range n {
		key := like
		key.Name = fmt.Sprintf("web%04d", i)
		l.tracking.index.SetRefs(key, []reference.Ref{{Kind: reference.ConfigMap, Name: "old"}})
		keys = append(keys, key)
	}
	return keys
}

// work gets workloads as reconciliations do, with a worker for each.
func work(ctx context.Context, l *fixture, keys []workload.Key) (busy *atomic.Int64) {
	busy = &atomic.Int64{}
	for _, key := range keys {
		busy.Add(1)
		go func() {
			defer busy.Add(-1)
			l.tracking.Get(ctx, key)
		}()
	}
	return busy
}

// A conversion webhook of one kind may hang for all of its workloads.
func TestLiveReadsThatHangHoldFewWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &slowReader{takes: 30 * time.Second, read: map[string]int{}}
		l, _, two := trackingWithFailing(t, failing{"fleets.example.com": true}, live, nil)
		keys := crowd(l, two[1], 300)
		busy := work(t.Context(), l, keys)
		synctest.Wait()
		assert.EqualValues(t, workloadReads, busy.Load(), "the others use what is kept")
		<-time.After(liveReadLimit + time.Millisecond)
		assert.Zero(t, busy.Load(), "no read holds a worker for longer")

		busy = work(t.Context(), l, keys)
		synctest.Wait()
		assert.EqualValues(t, 1, busy.Load(), "one finds out whether they hang still")
		<-time.After(liveReadLimit + time.Millisecond)

		live.answersAfter(0)
		for _, key := range keys {
			l.tracking.Get(t.Context(), key)
		}
		assert.Len(t, live.read, 300, "they are answered again, so that all are read")
	})
}

// Only a read that has taken too long is one that hangs.
func TestReadThatFailsAtOnceDoesNotHang(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		takes time.Duration
		err   error
		hangs bool
	}{
		"the read fails":                    {err: refused},
		"the read fails after its time":     {takes: liveReadLimit, err: refused, hangs: true},
		"the read is answered":              {},
		"the read is answered at the limit": {takes: liveReadLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r liveReads
				err := r.do(t.Context(), func(ctx context.Context) error {
					if tc.takes > 0 {
						<-ctx.Done()
					}
					return tc.err
				})
				assert.Equal(t, tc.err, err)
				assert.Equal(t, tc.hangs, r.hang)
			})
		})
	}
}

// Each of them has its turn.
func TestWorkloadsWhoseLiveReadWasSkippedAreReadAtTheNextRecheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &slowReader{takes: 2 * time.Second, read: map[string]int{}}
		l, store, two := trackingWithFailing(t, failing{"fleets.example.com": true}, live, nil)
		l.tracking.index.Delete(two[0])
		l.tracking.index.Delete(two[1])
		const all = 10 * workloadReads
		crowd(l, two[1], all)
		for round := range 10 {
			recheckOnce(t.Context(), l.tracking.rechecks)
			queued := store.queued()
			require.Len(t, queued, all)
			for _, key := range queued {
				work(t.Context(), l, []workload.Key{key})
				synctest.Wait()
			}
			<-time.After(recheckEvery)
			assert.Len(t, live.read, (round+1)*workloadReads)
		}
		assert.Equal(t, workloadReads, live.most)
	})
}

// The labels of a namespace do not take longer either.
func TestNamespacesWhoseLiveReadHangsAreJudgedByTheCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		selector, err := labels.Parse("team=b")
		require.NoError(t, err)
		live := &slowReader{takes: 30 * time.Second, read: map[string]int{}}
		l, _, two := trackingWithFailing(t, failing{"namespaces": true}, live, selector)
		var busy, inScope atomic.Int64
		ask := func(n int) {
			for range n {
				busy.Add(1)
				go func() {
					defer busy.Add(-1)
					if l.tracking.Scope(t.Context(), two[1], nil) == Inside {
						inScope.Add(1)
					}
				}()
			}
			synctest.Wait()
		}
		ask(200)
		assert.EqualValues(t, 200, busy.Load())
		<-time.After(liveReadLimit + time.Millisecond)
		assert.Zero(t, busy.Load())
		assert.EqualValues(t, 200, inScope.Load(), "by the labels in the cache")
	})
}

// controller-runtime recovers the panic of a reconciliation.
func TestLiveReadThatPanicsFreesItsSlot(t *testing.T) {
	t.Parallel()
	r := &liveReads{}
	for range workloadReads {
		assert.Panics(t, func() { _ = r.do(t.Context(), func(context.Context) error { panic("unexpected object") }) })
	}
	assert.NoError(t, r.do(t.Context(), func(context.Context) error { return nil }))
}

func TestWorkloadWhoseReadFailsIsAsItWasReadLiveBefore(t *testing.T) {
	t.Parallel()
	fleets := schema.GroupResource{Group: "example.com", Resource: "fleets"}
	for name, c := range map[string]struct {
		before liveReader
		tracks []reference.Ref
	}{
		"it was there":    {liveReader{lists: "fresh"}, []reference.Ref{{Kind: reference.ConfigMap, Name: "fresh"}}},
		"it was deleted":  {liveReader{err: apierrors.NewNotFound(fleets, "web")}, nil},
		"it was not read": {liveReader{err: errors.New("away")}, []reference.Ref{{Kind: reference.ConfigMap, Name: "old"}}},
	} {
		api := &struct{ liveReader }{c.before}
		l, _, keys := trackingWithFailing(t, failing{"fleets.example.com": true}, api, nil)
		for range 2 {
			o, found := l.tracking.Get(t.Context(), keys[1])
			require.Equal(t, c.tracks != nil, found, name)
			if found {
				assert.Equal(t, c.tracks, reloadtest.Reader().Intent(o).Refs(), name)
			}
			api.liveReader = liveReader{err: errors.New("away")}
		}
	}
}
