package chain_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestTheLeaderPublishesWhatDiffers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var written []string
		patches := func() []string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(written)
		}
		w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			patch, ok := action.(clienttesting.PatchAction)
			require.True(t, ok)
			w.mu.Lock()
			defer w.mu.Unlock()
			written = append(written, string(patch.GetPatch()))
			return true, nil, errors.New("refused")
		})
		w.graph()
		assert.Empty(t, patches(), "it does not lead")
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(time.Second)
		require.Len(t, patches(), 1, "the resource with publish")
		assert.Contains(t, patches()[0], `"example.org/checksum":"v1:`)
		assert.Contains(t, patches()[0], `"uid":"uid-1"`, "so that it creates nothing")
		assert.NotContains(t, patches()[0], "spec")
		w.pass(10 * time.Second)
		assert.Len(t, patches(), 2, "what failed is repeated")
	})
}

func TestAnAnnotationThatAnotherWriterRemovesIsRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var writes atomic.Int32
		w.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return true, &unstructured.Unstructured{}, nil
		})
		w.graph()
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(time.Minute)
		assert.EqualValues(t, 1, writes.Load())
		w.put(proxies, "p", map[string]any{"service": "s"}) // it has no annotation
		w.pass(time.Second)
		assert.EqualValues(t, 1, writes.Load(), "not in a hot loop")
		w.pass(10 * time.Second)
		assert.EqualValues(t, 2, writes.Load())
	})
}

// Another writer, such as an installation with another digest key, removes each digest at once. A writer that copies the annotation would
// follow each write: they become rare.
func TestADigestThatIsContestedIsWrittenLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var writes atomic.Int32
		var last atomic.Value
		w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			written := &unstructured.Unstructured{}
			assert.NoError(t, written.UnmarshalJSON(action.(clienttesting.PatchAction).GetPatch()))
			last.Store(written.GetAnnotations())
			writes.Add(1)
			return true, written, nil
		})
		w.graph()
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		spec := map[string]any{"service": "s"}
		for range 6 * 60 * 60 / 5 {
			before := writes.Load()
			w.pass(5 * time.Second)
			if writes.Load() > before {
				w.put(proxies, "p", spec)
			}
		}
		before := writes.Load()
		assert.Less(t, before, int32(45), "one in eleven minutes, after some doublings")
		assert.Greater(t, before, int32(30), "it does not give up")

		w.pass(20 * time.Minute)
		require.Equal(t, before+1, writes.Load())
		keep := func() { w.put(proxies, "p", spec, last.Load().(map[string]string)) }
		keep()
		w.pass(20 * time.Minute)
		w.put(proxies, "p", spec)
		w.pass(20 * time.Minute)
		keep()
		assert.Equal(t, before+2, writes.Load())
		w.put(proxies, "p", map[string]any{"service": "s", "size": int64(1)}, last.Load().(map[string]string))
		w.pass(20 * time.Minute)
		assert.Equal(t, before+2, writes.Load(), "it remains")
	})
}

// One installation of several writes where the workloads are its own.
func TestNothingIsPublishedOutOfScope(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var writes atomic.Int32
		w.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return true, &unstructured.Unstructured{}, nil
		})
		w.outside.Store(true)
		w.graph()
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		for n := range 100 {
			w.put(proxies, "p", map[string]any{"service": "s", "size": int64(n)})
			w.pass(time.Minute)
		}
		require.Zero(t, writes.Load())
		w.outside.Store(false)
		w.pass(time.Minute + time.Second)
		assert.NotZero(t, writes.Load(), "the namespace has come into scope")
	})
}

// One write after the other, but not one for each debounce.
func TestManyDigestsArePublishedWithoutPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var writes, inFlight atomic.Int32
		w.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			assert.EqualValues(t, 1, inFlight.Add(1), "one at a time")
			defer inFlight.Add(-1)
			<-time.After(time.Millisecond)
			writes.Add(1)
			return true, &unstructured.Unstructured{}, nil
		})
		const many = 1_000
		for n := range many {
			w.put(proxies, fmt.Sprint("p", n), map[string]any{})
		}
		w.Configure(proxyToSecret())
		w.pass(time.Second)
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(5 * time.Second)
		assert.EqualValues(t, many, writes.Load())
	})
}
