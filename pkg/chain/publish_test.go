package chain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/unraced"
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
		w.pass(12 * time.Second)
		assert.Len(t, patches(), 2, "what failed is repeated")
	})
}

func TestAnAnnotationThatAnotherWriterRemovesIsRestored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var writes atomic.Int32
		w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return accepted(action)
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
		w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return accepted(action)
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

// One write after the other, and nothing in between, however many there are.
func TestManyDigestsArePublishedWithoutPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var writes, inFlight atomic.Int32
		const many, writing = 1_000, time.Millisecond
		w.applying = func() {
			assert.EqualValues(t, 1, inFlight.Add(1), "one at a time")
			<-time.After(writing)
			inFlight.Add(-1)
		}
		w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return accepted(action)
		})
		for n := range many {
			w.put(proxies, fmt.Sprint("p", n), map[string]any{})
		}
		w.Configure(proxyToSecret())
		w.pass(time.Second)
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(debounce + many*writing)
		assert.EqualValues(t, many, writes.Load())
	})
}

// deniedBy is the error of a write that an admission webhook denied with the Status of a request of its own, as controller-runtime does.
func deniedBy(own *apierrors.StatusError) error {
	own.ErrStatus.Message = `admission webhook "w.example.com" denied the request: ` + own.ErrStatus.Message
	return own
}

// An admission policy, a webhook or a missing permission refuses each write. It is repeated less and less often, and reported each hour.
func TestADigestThatIsRefusedIsWrittenLessAndLessOften(t *testing.T) {
	unraced.Test(t)
	t.Parallel()
	refusals := map[string]error{
		"no permission":       apierrors.NewForbidden(proxies.GroupResource(), "p", errors.New("no permission to patch")),
		"a policy":            apierrors.NewInvalid(schema.GroupKind{}, "p", nil),
		"a webhook":           apierrors.NewBadRequest("denied the request"),
		"an answer of a 405":  apierrors.NewMethodNotSupported(proxies.GroupResource(), "patch"),
		"an object too large": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"a webhook by 404":    deniedBy(apierrors.NewNotFound(proxies.GroupResource(), "other")),
		"a webhook by 409":    deniedBy(apierrors.NewConflict(proxies.GroupResource(), "other", errors.New("locked"))),
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newRefused(t)
				w.refuse(refusal)
				w.pass(time.Minute + 30*time.Second)
				assert.EqualValues(t, 4, w.writes.Load(), "after 10 s, 20 s and 40 s")
				w.pass(50 * time.Minute)
				require.Len(t, w.reports(), 1, "it is reported once")
				w.pass(3*time.Hour + 10*time.Minute)
				assert.Less(t, w.writes.Load(), int32(60), "every 5 minutes")
				assert.Greater(t, w.writes.Load(), int32(40), "it does not give up")
				require.Len(t, w.reports(), 4, "the API server forgets Events after an hour")
				first := w.reports()[0]
				require.ErrorIs(t, first.Err, refusal)
				assert.Equal(t, "example.org/checksum", first.Annotation)
				assert.Equal(t, "ns/p", first.Object.GetNamespace()+"/"+first.Object.GetName())
				assert.NotEmpty(t, first.Object.GetKind())
				assert.InDelta(t, 1, w.unpublished(), 0)

				// An edit that changes nothing that counts does not shorten the pause.
				before := w.writes.Load()
				for n := range 60 {
					w.put(proxies, "p", map[string]any{"service": "s", "size": int64(n)})
					w.pass(time.Second)
				}
				assert.LessOrEqual(t, w.writes.Load(), before+1)

				// Another digest is written at once, and its pauses begin again.
				before = w.writes.Load()
				w.set(tls, "2")
				w.pass(15 * time.Second)
				assert.Equal(t, before+2, w.writes.Load())
				assert.Len(t, w.reports(), 4, "it was reported already")

				w.refuse(nil)
				w.pass(10 * time.Minute)
				assert.Zero(t, w.unpublished(), "it is written")
				w.refuse(refusal)
				w.set(tls, "3")
				w.pass(time.Second)
				assert.Len(t, w.reports(), 5, "it is another refusal")
			})
		})
	}
}

// The API server, or a webhook, does not answer for some time: that is reported when it lasts, and the pauses remain short.
func TestADigestThatCannotBeWrittenForSomeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(apierrors.NewInternalError(errors.New("failed calling webhook: connection refused")))
		w.pass(25 * time.Second)
		assert.Empty(t, w.reports(), "it may pass")
		w.pass(time.Hour)
		assert.Len(t, w.reports(), 1)
		w.refuse(nil)
		w.pass(70 * time.Second)
		assert.Zero(t, w.unpublished(), "within a minute")
	})
}

// A write that never has an answer would keep all later ones of its namespace waiting.
func TestWriteThatHangsIsGivenUpAfterTenSecondsAndRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(nil)
		w.pass(time.Minute)
		before := w.writes.Load()
		w.stalled.Store(new(string))
		w.set(tls, "2")
		w.pass(9 * time.Second)
		w.stalled.Store(nil) // the write that is under way hangs on
		assert.Zero(t, w.unpublished(), "a slow answer is waited for")
		w.pass(2 * time.Second)
		assert.InDelta(t, 1, w.unpublished(), 0)
		w.pass(12 * time.Second)
		assert.Equal(t, before+1, w.writes.Load())
		assert.Zero(t, w.unpublished())
	})
}

// A policy can refuse all objects of a namespace.
func TestFewOfManyRefusalsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newRefused(t)
		w.refuse(apierrors.NewForbidden(proxies.GroupResource(), "p", errors.New("denied")))
		const many = 60
		for n := range many {
			w.put(proxies, fmt.Sprint("p", n), map[string]any{"service": "s"})
			synctest.Wait()
		}
		w.pass(50 * time.Minute)
		reports := w.reports()
		require.Len(t, reports, 10)
		assert.False(t, reports[8].More)
		assert.True(t, reports[9].More, "the last one says that there are more")
		w.pass(20 * time.Minute)
		require.Len(t, w.reports(), 20, "the same ones again, and no others")
		assert.InDelta(t, many+1, w.unpublished(), 0)
		for n := range many {
			require.NoError(t, w.client.Resource(proxies).Namespace("ns").Delete(t.Context(), fmt.Sprint("p", n), metav1.DeleteOptions{}))
			synctest.Wait()
		}
		w.pass(10 * time.Minute)
		assert.InDelta(t, 1, w.unpublished(), 0, "what is deleted counts no more")
		w.stopLeading()
		w.pass(time.Second)
		assert.Zero(t, w.unpublished(), "it does not lead")
	})
}

// refused is a world that leads, and whose writes can be refused.
type refused struct {
	*world
	writes      *atomic.Int32
	registry    *prometheus.Registry
	stopLeading context.CancelFunc

	err error
	// stored are the annotations of each object that is written, if changed; else those of the write.
	stored  map[string]string
	changed bool
}

func newRefused(t *testing.T) *refused {
	t.Helper()
	r := &refused{world: newWorld(t), writes: &atomic.Int32{}, registry: prometheus.NewRegistry()}
	require.NoError(t, r.Register(r.registry))
	r.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		r.writes.Add(1)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err != nil {
			return true, nil, r.err
		}
		done, written, err := accepted(action)
		if r.changed {
			written.(*unstructured.Unstructured).SetAnnotations(r.stored)
		}
		return done, written, err
	})
	r.refuse(errors.New("not now"))
	r.graph()
	ctx, stop := context.WithCancel(t.Context())
	r.stopLeading = stop
	go func() { assert.NoError(t, r.Lead(ctx)) }()
	return r
}

// refuse has each write end with an error; nil lets them pass.
func (r *refused) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// change has other annotations stored than those of the write; false ends that.
func (r *refused) change(changed bool, stored map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed, r.stored = changed, stored
}

func (r *refused) reports() []chain.Unpublished {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refusals)
}

// unpublished is the value of the metric.
func (r *refused) unpublished() float64 {
	return values(r.T, r.registry)["pod_reloader_referent_unpublished"]
}
