package tracking

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// largeReader is an API server with large workloads. It counts those that are in memory: from when they are read until they are summarized.
type largeReader struct {
	liveReader
	takes time.Duration
	// small is a namespace whose workloads are small.
	small string

	mu                   sync.Mutex
	inMemory, most, read int
}

func (r *largeReader) RoundTrip(request *http.Request) (*http.Response, error) {
	size := largeread.Size + 1
	if r.small != "" && request.URL.Path == "/"+r.small {
		size = 1
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(make([]byte, size)))}, nil
}

func (r *largeReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/"+key.Namespace, http.NoBody)
	if err != nil {
		return err
	}
	response, err := largeread.Wrap(r).RoundTrip(request)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.inMemory, r.read = r.inMemory+1, r.read+1
	r.most = max(r.most, r.inMemory)
	r.mu.Unlock()
	<-time.After(r.takes)
	_ = response.Body.Close()
	return r.liveReader.Get(ctx, key, object, opts...)
}

func (r *largeReader) summary(o workload.Object) workload.Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inMemory--
	return o.Summary()
}

// A tenant with many large workloads must not fill the memory while their watch fails. Those that are not read come first at the next
// re-check.
func TestLargeWorkloadsAreReadLiveInTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &largeReader{takes: 10 * time.Millisecond}
		l, _, two := trackingWithFailing(t, failing{"fleets.example.com": true}, live, nil)
		l.tracking.live.large, l.tracking.live.summary = largeread.New(3, 1), live.summary
		keys := slices.Concat(crowd(l, two[0], 10), crowd(l, two[1], 10))
		for n := range 5 {
			work(t.Context(), l, keys)
			<-time.After(time.Second)
			assert.Equal(t, 4*(n+1), live.read, "of each namespace, one has its turn, and one waits for it")
			keys = slices.Collect(maps.Keys(l.tracking.watches.takeSkipped()))
		}
		assert.Empty(t, keys)
		assert.Equal(t, 2, live.most, "one of each namespace")
	})
}

// The API server has answered: the others are read all the same.
func TestLiveReadWithoutATurnDoesNotHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &largeReader{takes: time.Millisecond}
		l, _, two := trackingWithFailing(t, failing{"fleets.example.com": true}, live, nil)
		limit := largeread.New(1, 1)
		l.tracking.live.large, l.tracking.live.summary = limit, live.summary
		before, end := limit.Begin(t.Context(), two[1].Namespace)
		w := l.tracking.watches.get(two[1].Kind)
		other := &largeReader{takes: time.Millisecond}
		require.NoError(t, other.Get(largeread.Admit(before), client.ObjectKey{}, w.kind.NewObject()))
		busy := work(t.Context(), l, two[1:])
		<-time.After(liveReadLimit + time.Millisecond)
		assert.Zero(t, busy.Load(), "no worker waits for longer")
		assert.False(t, w.reads.hang, "a read that did not begin says nothing about the API server")
		assert.Contains(t, l.tracking.watches.takeSkipped(), two[1], "it comes first at the next re-check")
		end()
		l.tracking.Get(t.Context(), two[1])
		assert.Equal(t, 1, live.read)
		assert.Empty(t, l.tracking.watches.takeSkipped())
	})
}

// A reconciliation that writes keeps the turn of its namespace for up to a minute.
func TestLargeWorkloadsWithoutATurnHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &largeReader{takes: time.Millisecond}
		l, _, two := trackingWithFailing(t, failing{"fleets.example.com": true}, live, nil)
		limit := largeread.New(2, 1)
		l.tracking.live.large, l.tracking.live.summary, live.small = limit, live.summary, two[1].Namespace
		writing, end := limit.Begin(t.Context(), two[0].Namespace)
		defer end()
		w := l.tracking.watches.get(two[0].Kind)
		require.NoError(t, (&largeReader{takes: time.Millisecond}).Get(largeread.Admit(writing), client.ObjectKey{}, w.kind.NewObject()))
		work(t.Context(), l, crowd(l, two[0], 40))
		<-time.After(time.Second)
		work(t.Context(), l, two[1:])
		<-time.After(time.Second)
		assert.Equal(t, 1, live.read)
		assert.NotContains(t, l.tracking.watches.takeSkipped(), two[1])
	})
}

// Reconciliations of other large workloads wait for their turns, each in its namespace, so that there is never one at once.
func TestLargeWorkloadIsReadLiveWhereOthersHoldAllTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &largeReader{takes: time.Millisecond}
		l, _, two := trackingWithFailing(t, failing{"fleets.example.com": true}, live, nil)
		limit := largeread.New(3, 1)
		l.tracking.live.large, l.tracking.live.summary = limit, live.summary
		for _, key := range two {
			defer holdTurns(t.Context(), limit, key)()
		}
		<-time.After(100 * time.Millisecond)
		busy := work(t.Context(), l, slices.Concat(crowd(l, two[0], 5), crowd(l, two[1], 5)))
		synctest.Wait()
		assert.EqualValues(t, 2, busy.Load(), "one of each namespace waits")
		<-time.After(liveReadLimit)
		assert.Equal(t, 2, live.read)
		assert.Len(t, l.tracking.watches.takeSkipped(), 8)
	})
}

// They must not hold all reads of the kind while they wait for a turn.
func TestFewLargeWorkloadsOfManyNamespacesWaitForALiveRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &largeReader{takes: time.Millisecond}
		l, _, two := trackingWithFailing(t, failing{"fleets.example.com": true}, live, nil)
		limit := largeread.New(workloadReads, 1)
		l.tracking.live.large, l.tracking.live.summary, live.small = limit, live.summary, two[1].Namespace
		var keys []workload.Key
		for n := range workloadReads {
			like := two[0]
			like.Namespace = fmt.Sprintf("tenant-%d", n)
			keys = append(keys, crowd(l, like, 1)...)
			writing, end := limit.Begin(t.Context(), like.Namespace)
			defer end()
			other := &largeReader{takes: time.Millisecond}
			require.NoError(t, other.Get(largeread.Admit(writing), client.ObjectKey{}, workload.Deployment().NewObject()))
		}
		busy := work(t.Context(), l, keys)
		synctest.Wait()
		assert.EqualValues(t, largeWaits, busy.Load())
		l.tracking.Get(t.Context(), two[1])
		assert.Equal(t, 1, live.read, "a small one is read meanwhile")
		assert.Len(t, l.tracking.watches.takeSkipped(), workloadReads-largeWaits)
		<-time.After(liveReadLimit)
		assert.Zero(t, busy.Load())
	})
}

// holdTurns holds the turns of the namespace of a workload as two others do that are reconciled again and again, until it is stopped.
func holdTurns(ctx context.Context, limit largeread.Limit, of workload.Key) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			other := &largeReader{takes: time.Second}
			for ctx.Err() == nil {
				scoped, end := limit.Begin(ctx, of.Namespace)
				_ = other.Get(largeread.Admit(scoped), client.ObjectKey{}, workload.Deployment().NewObject())
				end()
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}
