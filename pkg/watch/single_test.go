package watch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// What is learnt after WaitForSync has returned is a change, also where the
// callback for the sync comes later.
func TestSyncDeliversTheStateAtSync(t *testing.T) {
	t.Parallel()
	var calls journal
	single := newSingle(t, newServer(t), calls.single("a"))
	state := func(version string) *unstructured.Unstructured {
		u := object("a")
		u.SetResourceVersion(version)
		return u
	}
	require.NoError(t, single.Learn(state("1")))
	single.Changed()
	single.Deliver(t.Context())
	assert.Empty(t, calls.read(), "before sync")
	single.Sync(func() { assert.NoError(t, single.Learn(state("2"))) }) // the moment in which WaitForSync returns
	single.Changed()
	single.Deliver(t.Context())
	assert.Equal(t, []string{"synced a@1", "change a@2"}, calls.read())
	single.Changed()
	single.Deliver(t.Context())
	assert.Empty(t, calls.read(), "this state was shown")
	require.NoError(t, single.Learn(state("2"))) // a list delivers another copy of it
	single.Changed()
	single.Deliver(t.Context())
	assert.Empty(t, calls.read(), "this version was shown")
}

// The cache can be ahead of the events: at that of a second change, it may have the status that was written after it.
func TestStatusBehindABurstOfChangesIsNoChange(t *testing.T) {
	t.Parallel()
	var calls journal
	single := newSingle(t, newServer(t), calls.single("a"))
	learn := func(version string, changes ...func(*unstructured.Unstructured)) {
		u := object("a", changes...)
		u.SetResourceVersion(version)
		require.NoError(t, single.Learn(u))
	}
	deliver := func() []string {
		single.Changed()
		single.Deliver(t.Context())
		return calls.read()
	}
	learn("1", generation(1))
	single.Sync(func() {})
	assert.Equal(t, []string{"synced a@1"}, deliver())
	learn("3", generation(3))
	assert.Equal(t, []string{"change a@3"}, deliver(), "for the event of the second generation")
	learn("4", generation(3))
	assert.Empty(t, deliver(), "for the event of the third generation")
	learn("5", generation(3), uid("another"))
	assert.Equal(t, []string{"change a@5"}, deliver(), "the object was created again")
	learn("6", generation(3), uid("another"))
	assert.Empty(t, deliver())
	learn("5", generation(3), uid("another"))
	assert.Equal(t, []string{"change a@5"}, deliver(), "it was restored from a backup")
	learn("7")
	assert.Equal(t, []string{"change a@7"}, deliver(), "it has no generation")
	learn("8")
	assert.Equal(t, []string{"change a@8"}, deliver(), "it has no generation, and nor had the one before")
}

// Which goroutine comes first after the sync is random.
func TestUpdateAfterWaitForSyncReachesOnChange(t *testing.T) {
	t.Parallel()
	for range 50 {
		inBubble(t, func(t bubble) {
			var calls journal
			s := newServer(t, object("a"))
			single := newSingle(t, s, calls.single("a"))
			updated := make(chan error, 1)
			go func() {
				err := single.WaitForSync(t.Context())
				s.Update(object("a"))
				updated <- err
			}()
			start(t, single)
			require.NoError(t, <-updated)
			synctest.Wait()
			assert.Equal(t, []string{"synced a@1001", "change a@1002"}, calls.read())
		})
	}
}

func TestNamespaceIsMissing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		objects []*unstructured.Unstructured
		server  faults
	}{
		"an object of the name, listed":   {[]*unstructured.Unstructured{object("a")}, faults{noStreamList: true}},
		"an object of the name, streamed": {[]*unstructured.Unstructured{object("a")}, faults{}},
		"no object of the name":           {[]*unstructured.Unstructured{object("b")}, faults{}},
		"no object at all":                {nil, faults{noStreamList: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				s := newServer(t, c.objects...)
				s.Fault(c.server)
				config := calls.single("a")
				config.Namespace = ""
				single := newSingle(t, s, config)
				waited := make(chan error, 1)
				go func() { waited <- single.WaitForSync(t.Context()) }()
				for _, err := range []error{single.Start(t.Context()), single.Start(t.Context()), <-waited} {
					var fault *watch.ConfigError
					require.ErrorAs(t, err, &fault)
					assert.Equal(t, "Namespace", fault.Field)
					assert.ErrorContains(t, err, `watch ingresses.networking.k8s.io/v1 "a": Namespace: is missing; ingresses.networking.k8s.io has namespaces`)
				}
				assert.Empty(t, calls.read())
				assert.False(t, single.IsSynced(), "it never began")
			})
		})
	}
}

func TestNamespaceIsMissingAndTheKindShowsItLater(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t)
		s.clusterScoped = true // as if get were not granted: nothing is known
		config := (&journal{}).single("a")
		config.Namespace = ""
		single := newSingle(t, s, config)
		ended := make(chan error, 1)
		go func() { ended <- single.Start(t.Context()) }()
		pass(time.Minute)
		assert.True(t, single.IsSynced(), "the object is listed")
		assert.Empty(t, ended)
		s.Create(object("web/a"))
		pass(time.Second)
		require.ErrorContains(t, <-ended, "Namespace: is missing")
	})
}

func TestClusterScopedObjectThatDoesNotExist(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t)
		s.clusterScoped = true
		config := calls.single("a")
		config.Namespace = ""
		startSingle(t, s, config)
		assert.Equal(t, []string{"synced none"}, calls.read())
	})
}

// The API servers of a cluster learn a new CustomResourceDefinition one after
// the other, and the list may have been the answer of another one.
func TestPathThatIsNotServedYetDoesNotShowTheScope(t *testing.T) {
	t.Parallel()
	for name, clusterScoped := range map[string]bool{"cluster-scoped": true, "namespaced": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var calls journal
				var book logBook
				s := newServer(t)
				s.clusterScoped = clusterScoped
				s.Fault(faults{unserved: true})
				config := calls.single("a")
				config.Namespace, config.Logger = "", book.logger()
				single := newSingle(t, s, config)
				ended := make(chan error, 1)
				go func() { ended <- single.Start(t.Context()) }()
				pass(time.Minute)
				assert.Equal(t, []string{"synced none"}, calls.read())
				assert.Len(t, book.lines(t, "DEBUG+3", "cannot find out whether the kind has namespaces"), 1)
				s.Fault(faults{})
				if clusterScoped {
					s.Create(object("a", func(u *unstructured.Unstructured) { u.SetNamespace("") }))
					pass(time.Second)
					assert.Equal(t, []string{"change a@1001"}, calls.read())
					single.Stop()
					require.NoError(t, <-ended)
				} else {
					s.Create(object("a"))
					require.ErrorContains(t, <-ended, "Namespace: is missing")
				}
			})
		})
	}
}

func TestSyncDoesNotWaitForeverForTheScope(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls journal
		s := newServer(t)
		s.Fault(faults{hangGet: true})
		config := calls.single("a")
		config.Namespace = ""
		startSingle(t, s, config)
		pass(31 * time.Second)
		assert.Equal(t, []string{"synced none"}, calls.read())
	})
}

func TestEveryWatchErrorIsReported(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var many, one journal
		report := func(j *journal) func(context.Context, error) {
			return func(_ context.Context, err error) { j.add("%s", err) }
		}
		s := newServer(t, object("a"))
		config := (&journal{}).single("a")
		config.OnWatchError = report(&one)
		single := startSingle(t, s, config)
		bulk := startBulk(t, s, watch.Config{OnWatchError: report(&many)})
		pass(time.Minute)
		s.Drop(nil) // a clean end
		pass(time.Minute)
		assert.Empty(t, append(many.read(), one.read()...))
		for range 2 {
			s.Break(reset())
			pass(time.Minute)
			for j, last := range map[*journal]func() (time.Time, error){&many: bulk.LastWatchError, &one: single.LastWatchError} {
				_, err := last()
				assert.Equal(t, []string{err.Error()}, j.read())
			}
		}
	})
}

func TestOnWatchErrorMayBlockAndPanic(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		var calls, errs journal
		var book logBook
		release := make(chan struct{})
		s := newServer(t, object("a"))
		startBulk(t, s, watch.Config{
			Logger: book.logger(), OnChange: calls.onChange,
			OnWatchError: func(_ context.Context, err error) {
				errs.add("%s", err)
				<-release
				panic("OnWatchError!")
			},
		})
		pass(time.Minute)
		calls.read()
		for range 3 {
			s.Break(reset())
			pass(time.Minute)
		}
		s.Update(object("a"))
		pass(time.Minute)
		assert.Equal(t, []string{"change +0 ~1 -0 initial=false"}, calls.read(), "the watch is repaired meanwhile")
		assert.Len(t, errs.read(), 1)
		close(release)
		synctest.Wait()
		assert.Len(t, errs.read(), 1, "the latest of those that came meanwhile")
		assert.Len(t, book.lines(t, "ERROR", "callback panicked"), 2)
	})
}
