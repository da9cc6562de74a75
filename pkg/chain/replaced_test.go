package chain_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
)

// A watch that is made again ends some time later: what its goroutines still deliver is of before.
func TestAWatchThatWasReplacedDeliversNothing(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(of chain.Watching, before *unstructured.Unstructured){
		"a deletion": func(of chain.Watching, before *unstructured.Unstructured) { of.Deliver(before, nil) },
		"an earlier version": func(of chain.Watching, before *unstructured.Unstructured) {
			of.Reduce(before)
			of.Deliver(nil, before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.graph()
				before := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "other"}}}
				before.SetNamespace("ns")
				before.SetName("s")
				before.SetUID("uid-0")
				entry, old := w.entry(), w.Watching(services)
				old.Refused(t.Context())
				w.pass(time.Minute)
				late(old, before)
				w.pass(time.Minute)
				assert.Equal(t, entry, w.entry())
			})
		})
	}
}

// Before the next watch has listed the objects, nothing is known of them: none is missing.
func TestAWatchThatWasReplacedIsNotSynced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		old := w.Watching(services)
		w.refuse(services, apierrors.NewForbidden(services.GroupResource(), "", nil))
		old.Refused(t.Context())
		w.pass(time.Second)
		forbidden := "kafkaservices.kroxylicious.io/s is forbidden: the resource kafkaservices.kroxylicious.io"
		assert.Equal(t, forbidden, w.hold())
		old.Synced()
		w.pass(200 * time.Millisecond)
		assert.Equal(t, forbidden, w.hold())
	})
}

// An object that is created again is read before the first list of the next watch has ended, and delivered after it.
func TestAnObjectThatIsCreatedDuringTheFirstListIsNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		entry := w.entry()
		w.refuse(services, errors.New("no answer"))
		w.Watching(services).Refused(t.Context())
		w.pass(time.Second)
		object, err := w.client.Resource(services).Namespace("ns").Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		next := w.Watching(services)
		next.Reduce(object)
		next.Synced()
		w.pass(200 * time.Millisecond)
		assert.Contains(t, w.hold(), "is missing", "it has not been delivered")
		next.Deliver(nil, object)
		w.pass(200 * time.Millisecond)
		assert.Equal(t, entry, w.entry())
	})
}

// A definition gets another default, or its conversion another rule: the next list has other content, and the same resourceVersions.
func TestContentThatChangesWithoutANewVersionCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		object, err := w.client.Resource(services).Namespace("ns").Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		read := func(spec map[string]any, version string) {
			again := object.DeepCopy()
			again.Object["spec"] = spec
			again.SetResourceVersion(version)
			w.Watching(services).Reduce(again)
			w.pass(time.Second)
		}
		entry, version := w.entry(), object.GetResourceVersion()
		read(map[string]any{"secret": "tls", "port": int64(1)}, version)
		changed := w.entry()
		assert.NotEqual(t, entry, changed)
		w.take()
		read(map[string]any{"secret": "tls", "port": int64(1)}, version)
		assert.Empty(t, w.take(), "it is the same again")
		read(map[string]any{"secret": "tls", "port": int64(2)}, version+"0")
		assert.Equal(t, changed, w.entry(), "the watch delivers a new version")
	})
}

// The first digest key can come long after the process has started.
func TestAWatchThatWasRefusedBeforeThereIsADigestKeyRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rotate(digest.Ring{})
		w.graph()
		w.Watching(services).Refused(t.Context())
		w.pass(time.Minute)
		w.rotate(digesttest.Ring(t, "1"))
		w.pass(time.Second)
		assert.Empty(t, w.hold())
	})
}

// The permission to list is there, the permission to watch is not: each list that succeeds is followed by a watch that is refused.
func TestAResourceThatMayBeListedAndNotWatchedIsListedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		allow := w.refuseWatch(services, apierrors.NewForbidden(services.GroupResource(), "", nil))
		lists := w.lists("kafkaservices")
		w.graph()
		w.pass(9 * time.Second)
		assert.Contains(t, w.hold(), "is forbidden")
		assert.Less(t, lists(), 20)
		w.pass(10 * time.Minute)
		before := lists()
		w.pass(10 * time.Minute)
		assert.Less(t, lists()-before, 120, "each watch also tries again by itself, with growing pauses")
		assert.Greater(t, lists()-before, 10, "it does not give up")
		allow()
		w.pass(time.Minute + time.Second)
		assert.Empty(t, w.hold())

		w.pass(2 * time.Minute)
		w.Watching(services).Refused(t.Context())
		w.pass(500 * time.Millisecond)
		assert.Empty(t, w.hold(), "a watch that has worked is made again at once")
		w.Watching(services).Refused(t.Context())
		w.pass(500 * time.Millisecond)
		assert.Contains(t, w.hold(), "is forbidden")
		w.pass(time.Second)
		assert.Empty(t, w.hold(), "the pauses begin again")
	})
}

func TestAWatchThatIsRefusedForSomeSecondsRecoversSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		allow := w.refuseWatch(services, apierrors.NewForbidden(services.GroupResource(), "", nil))
		w.graph()
		w.pass(2 * time.Second)
		assert.Contains(t, w.hold(), "is forbidden")
		allow()
		w.pass(time.Second)
		assert.Empty(t, w.hold(), "it is made again after 1 and after 2 seconds more")
	})
}

// While it waits to be made again, a watch tries again by itself, and fails again.
func TestFailuresOfAWatchThatWaitsDoNotLengthenThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		w.Watching(services).Refused(t.Context())
		w.pass(200 * time.Millisecond)
		require.Empty(t, w.hold(), "it has worked for a second before")
		for _, pause := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
			for range 10 {
				w.Watching(services).Refused(t.Context())
				w.pass(150 * time.Millisecond)
			}
			assert.Contains(t, w.hold(), "is forbidden")
			w.pass(pause - time.Second)
			assert.Empty(t, w.hold())
		}
	})
}

// A watch that takes the place of another one has listed some objects, or none, when the digest keys change. A graph of these is not
// complete.
func TestARotationBeforeTheNextWatchHasListedHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		definitions := referrers()
		definitions[0].Publish = true
		w.put(services, "s", map[string]any{})
		w.put(proxies, "p", map[string]any{"services": []any{"s"}})
		w.Configure(definitions)
		patches := w.lead()
		w.pass(time.Second)
		service := reference.Ref{Kind: "kafkaservices.kroxylicious.io", Name: "s"}
		before := w.State("ns", service)
		require.Nil(t, before.Hold)
		require.Len(t, patches(), 1)
		written := &unstructured.Unstructured{}
		require.NoError(t, written.UnmarshalJSON([]byte(patches()[0])))
		w.put(services, "s", map[string]any{}, written.GetAnnotations())
		w.pass(time.Second)

		allow := w.refuse(proxies, errors.New("no answer"))
		w.Watching(proxies).Replace()
		w.pass(time.Second)
		assert.Equal(t, before.Entries, w.State("ns", service).Entries, "the graph remains")
		w.rotate(digesttest.Ring(t, "12"))
		w.pass(time.Second)
		hold := w.State("ns", service).Hold
		if assert.NotNil(t, hold) {
			assert.Contains(t, hold.Reason, "unsynced")
		}
		assert.Len(t, patches(), 1, "the digest remains")

		allow()
		w.pass(time.Minute)
		oldest := w.currentRing().Keys()[0].ID
		assert.Equal(t, before.Entries[oldest], w.State("ns", service).Entries[oldest])
		assert.Len(t, patches(), 1, "the digest is right under the older key")
	})
}

// lead publishes, and returns the writes.
func (w *world) lead() (patches func() []string) {
	var all []string
	w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(clienttesting.PatchAction)
		require.True(w, ok, "a PATCH is the only write")
		w.mu.Lock()
		defer w.mu.Unlock()
		all = append(all, string(patch.GetPatch()))
		return accepted(action)
	})
	go func() { assert.NoError(w, w.Lead(w.Context())) }()
	return func() []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Clone(all)
	}
}

// A second list of one client, without a watch in between, would mean that it could not use the first one.
func TestListOfAWatchThatReplacesAnotherIsNoInvalidOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, monitor, lists := newWorld(t), &watchhealth.Monitor{}, 0
		w.listed = func(ctx context.Context, _ int64) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			lists++
			const url = "https://api/apis/kroxylicious.io/v1alpha1/kafkaservices?resourceVersion=0"
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				return err
			}
			response, err := monitor.Wrap(largeAnswers{}).RoundTrip(request)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, response.Body)
			return errors.Join(err, response.Body.Close())
		}
		for _, configured := range [][]referent.Definition{proxyToSecret()[:1], nil, proxyToSecret()[:1]} {
			w.Configure(configured)
			w.pass(time.Second)
		}
		require.Equal(t, 2, lists)
		statuses := monitor.Statuses()
		require.Len(t, statuses, 1)
		assert.True(t, statuses[0].Healthy(), statuses)
	})
}
