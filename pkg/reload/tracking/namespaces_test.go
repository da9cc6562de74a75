package tracking

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
	"github.com/pod-reloader/pod-reloader/pkg/scope"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// labelled is a cache of namespaces: their labels by name.
type labelled struct {
	cache.Cache
	namespaces map[string]map[string]string
	reads      int
}

func (l *labelled) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.reads++
	found, ok := l.namespaces[key.Name]
	if !ok {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), key.Name)
	}
	into.(*metav1.PartialObjectMetadata).Labels = found
	return nil
}

// The loop and the webhook mean the same by the scope: see package scope for the predicate itself.
func TestScopeOfTheLoop(t *testing.T) {
	t.Parallel()
	team, production := labels.SelectorFromSet(labels.Set{"team": "a"}), labels.SelectorFromSet(labels.Set{"env": "prod"})
	for name, tc := range map[string]struct {
		scope  scope.Scope
		labels map[string]string
		want   bool
		reads  int
	}{
		"everything":                            {want: true},
		"another namespace":                     {scope: scope.Scope{Namespaces: []string{"pay"}}},
		"an ignored namespace":                  {scope: scope.Scope{Ignored: []string{"shop"}}},
		"a label of the workload":               {scope: scope.Scope{ObjectSelector: team}, labels: map[string]string{"team": "a"}, want: true},
		"without the label":                     {scope: scope.Scope{ObjectSelector: team}},
		"the label of another team":             {scope: scope.Scope{ObjectSelector: team}, labels: map[string]string{"team": "b"}},
		"a label of the namespace":              {scope: scope.Scope{NamespaceSelector: production}, want: true, reads: 1},
		"a namespace without the label":         {scope: scope.Scope{NamespaceSelector: team}, labels: map[string]string{"team": "a"}, reads: 1},
		"of a workload that is out in any case": {scope: scope.Scope{NamespaceSelector: production, ObjectSelector: team}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := &labelled{namespaces: map[string]map[string]string{"shop": {"env": "prod"}}}
			n := &namespaces{scope: tc.scope, cache: known}
			assert.Equal(t, tc.want, n.scopeOf(t.Context(), "shop", tc.labels) == Inside)
			assert.Equal(t, tc.reads, known.reads)
		})
	}
	n := &namespaces{scope: scope.Scope{NamespaceSelector: production}, cache: &labelled{}}
	assert.Equal(t, Outside, n.scopeOf(t.Context(), "shop", nil), "a namespace that is not known yet")
}

// unlisted is a cache that has not listed the namespaces: it waits for that as long as it may.
type unlisted struct{ cache.Cache }

func (unlisted) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return apierrors.NewTimeoutError("failed waiting for the informer to sync", 0)
}

func TestScopeWithoutAListOfTheNamespacesIsUnknownAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		n := &namespaces{scope: scope.Scope{NamespaceSelector: labels.SelectorFromSet(labels.Set{"team": "a"})}, cache: unlisted{}}
		assert.Equal(t, Unknown, n.scopeOf(ctx, "shop", nil))
		assert.Zero(t, time.Since(start), "no worker is occupied")
	})
}

// While the watch of namespaces fails, the re-check queues all workloads, at its own pace.
func TestUnknownScopeIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for wait, fails := range map[time.Duration]failing{10 * time.Second: {}, 0: {"namespaces": true}} {
		l, _, _ := trackingWithFailing(t, fails, liveReader{}, labels.SelectorFromSet(labels.Set{"team": "a"}))
		assert.Equal(t, wait, l.tracking.LookAgain().RequeueAfter)
	}
}

// An action that was begun goes on while the labels of the namespace cannot be read.
func TestWorkloadStaysInScopeUnlessItHasLeft(t *testing.T) {
	t.Parallel()
	production := labels.SelectorFromSet(labels.Set{"env": "prod"})
	for name, tc := range map[string]struct {
		cache cache.Cache
		want  bool
	}{
		"inside":  {&labelled{namespaces: map[string]map[string]string{"shop": {"env": "prod"}}}, true},
		"outside": {&labelled{namespaces: map[string]map[string]string{"shop": {"env": "test"}}}, false},
		"unknown": {unlisted{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracking := &Tracking{namespaces: &namespaces{scope: scope.Scope{NamespaceSelector: production}, cache: tc.cache}}
			assert.Equal(t, tc.want, tracking.StaysInScope(t.Context(), workload.Key{Namespace: "shop", Name: "web"}, nil))
		})
	}
}

// undiscovered is a cache without an informer until the resource of namespaces is found.
type undiscovered struct {
	cache.Cache
	found    atomic.Bool
	informer takesHandlers
}

func (u *undiscovered) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if !u.found.Load() {
		return nil, errors.New("away")
	}
	return &u.informer, nil
}

// takesHandlers is an informer that refuses the first handler, as one that has just stopped does.
type takesHandlers struct {
	cache.Informer
	handlers atomic.Int32
}

func (i *takesHandlers) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	if i.handlers.Add(1) == 1 {
		return nil, errors.New("stopped")
	}
	return nil, nil //nolint:nilnil // it is not used
}

// No request for namespaces is sent that would show that their labels are not seen.
func TestFailureToFindNamespacesIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var watches watchhealth.Monitor
		from := &undiscovered{}
		log, lines := logtest.New()
		n := &namespaces{cache: from, failing: failingWatches{health: &watches}, log: log}
		go n.attach(t.Context())
		<-time.After(time.Minute)
		synctest.Wait()
		assert.True(t, watches.Failing("namespaces", ""), "the API server does not serve Namespaces")
		from.found.Store(true)
		<-time.After(time.Minute)
		synctest.Wait()
		assert.False(t, watches.Failing("namespaces", ""), "the API server serves Namespaces again")
		<-time.After(time.Hour)
		synctest.Wait()
		assert.Equal(t, int32(2), from.informer.handlers.Load(), "a second handler would queue all workloads once more")
		assert.Len(t, lines(), 3, "each cause is logged once: %s", lines)
		assert.Equal(t, 2, lines.Count("cannot watch namespaces"))
		assert.Equal(t, 1, lines.Count("watching namespaces"))
	})
}

// Another namespace of the name is listed or created, which queues its workloads in any case.
func TestNamespaceThatWasReadLiveIsForgottenWithItsDeletion(t *testing.T) {
	t.Parallel()
	l, store, keys := trackingWithFailing(t, failing{"namespaces": true}, liveReader{}, labels.SelectorFromSet(labels.Set{"team": "a"}))
	shop := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	for name, deleted := range map[string]any{"seen": shop, "missed": toolscache.DeletedFinalStateUnknown{Key: "shop"}} {
		require.Equal(t, Inside, l.tracking.Scope(t.Context(), keys[1], nil))
		l.tracking.namespaces.OnDelete(deleted)
		l.tracking.namespaces.OnUpdate(shop, shop)
		assert.Empty(t, store.queued(), name)
	}
}
