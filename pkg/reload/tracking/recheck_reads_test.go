package tracking

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/reload/index"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// readsOnce is a Store that calls read for each object.
type readsOnce struct {
	reads atomic.Int32
	read  func(ref reference.Ref) error
}

func (r *readsOnce) Recheck(_ context.Context, _ string, ref reference.Ref) error {
	r.reads.Add(1)
	return r.read(ref)
}

// recheckOnce looks once at everything that failing watches would report.
func recheckOnce(ctx context.Context, r *rechecks) {
	r.once(ctx)
	r.reading.Wait()
}

func TestRecheckLogsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) {
		if strings.Contains(args, "cannot read a config object") {
			failures.Add(1)
			assert.Contains(t, args, "away")
		}
	}, funcr.Options{Verbosity: 1}))
	l, _, _ := trackingWithFailing(t, failing{"secrets": true, "configmaps shop": true}, nil, nil)
	store := &readsOnce{read: func(ref reference.Ref) error {
		if ref.Kind == reference.ConfigMap {
			return errors.New("away")
		}
		return nil
	}}
	l.tracking.rechecks.with.Store = store
	recheckOnce(ctx, l.tracking.rechecks)
	assert.Equal(t, int32(3), store.reads.Load())
	assert.Equal(t, int32(1), failures.Load())
}

// Workloads of each namespace can track the same object, and custom resources can refer to it as well.
func TestRecheckReadsAClusterScopedObjectOnce(t *testing.T) {
	t.Parallel()
	gateway, route := reference.Ref{Kind: "gateways.example.org", Name: "g"}, reference.Ref{Kind: "routes.example.org", Name: "r"}
	l, store, keys := trackingWithFailing(t, failing{"gateways.example.org": true, "routes.example.org": true}, nil, nil)
	for _, key := range keys {
		l.tracking.index.SetRefs(key, []reference.Ref{gateway, route})
	}
	l.tracking.rechecks.with.Store = referring{store, map[string][]reference.Ref{"": {gateway}, "shop": {route}}}
	recheckOnce(t.Context(), l.tracking.rechecks)
	assert.ElementsMatch(t, []index.Object{{Ref: gateway}, {Namespace: "bank", Ref: route}, {Namespace: "shop", Ref: route}}, store.seen)
}

// hanging is a Store whose reads of Secrets have no answer.
type hanging struct{ *recheckStore }

func (h hanging) Recheck(ctx context.Context, namespace string, ref reference.Ref) error {
	if ref.Kind == reference.Secret {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.recheckStore.Recheck(ctx, namespace, ref)
}

func TestRecheckOfAKindThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, store, keys := trackingWithFailing(t, failing{"secrets": true, "configmaps": true, "fleets.example.com": true}, nil, nil)
		l.tracking.rechecks.with.Store = hanging{store}
		var refs []reference.Ref
		for n := range 2 * recheckInFlight {
			refs = append(refs, reference.Ref{Kind: reference.Secret, Name: strconv.Itoa(n)})
		}
		l.tracking.index.SetRefs(keys[0], refs)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.tracking.Recheck(ctx) }()
		app := index.Object{Namespace: "shop", Ref: reference.Ref{Kind: reference.ConfigMap, Name: "app"}}
		for _, want := range [][]index.Object{{app}, {app, app}} {
			<-time.After(recheckEvery + time.Second)
			synctest.Wait()
			store.mu.Lock()
			assert.Equal(t, want, store.seen)
			store.mu.Unlock()
			assert.ElementsMatch(t, keys, store.queued())
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestRecheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, rechecked, _ := trackingWithFailing(t, failing{"secrets": true, "fleets.example.com": true}, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		recheckOnce(ctx, l.tracking.rechecks)
		assert.Empty(t, rechecked.seen)
		assert.Empty(t, rechecked.queued())
	})
}

// countingWatches counts the watches that are asked for.
type countingWatches struct {
	failing
	asked int
}

func (c *countingWatches) Failing(resource, namespace string) bool {
	c.asked++
	return c.failing.Failing(resource, namespace)
}

// There are hundreds of thousands of objects, and mostly no watch fails.
func TestRecheckAsksForNoWatchWhileAllWork(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		watches failing
		asks    bool
	}{"all work": {failing{}, false}, "one fails": {failing{"daemonsets.apps": true}, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, _ := trackingWithFailing(t, nil, nil, nil)
			watches := &countingWatches{failing: tc.watches}
			l.tracking.rechecks.failing.health = watches
			recheckOnce(t.Context(), l.tracking.rechecks)
			assert.Equal(t, tc.asks, watches.asked > 0)
		})
	}
}

// The live read of a workload was skipped, and then not any more, since its watch worked for a round.
func TestRoundInWhichAllWatchesWorkEndsTheSkips(t *testing.T) {
	t.Parallel()
	l, _, keys := trackingWithFailing(t, failing{}, nil, nil)
	rechecks, w := l.tracking.rechecks, l.tracking.watches.get(keys[1].Kind)
	for _, skipped := range []bool{true, true, false} {
		if skipped {
			w.setSkipped(keys[1], true)
		}
		recheckOnce(t.Context(), rechecks)
		assert.Equal(t, skipped, len(rechecks.skips) > 0)
	}
	w.setSkipped(keys[1], true)
	recheckOnce(t.Context(), rechecks)
	assert.Equal(t, map[workload.Key]int{keys[1]: 1}, rechecks.skips, "it is counted anew")
}
