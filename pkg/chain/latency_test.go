package chain_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

const (
	// debounce is that of a Chain, reading how long a read of config objects takes here.
	debounce = 100 * time.Millisecond
	reading  = 5 * time.Millisecond
)

// other is a Secret beside tls.
var other = reference.Ref{Kind: reference.Secret, Name: "other"}

// deep makes the graph of a proxy with a Secret four levels below it: p, s, middle, leaf, tls.
func (w *world) deep() {
	w.Helper()
	w.mu.Lock()
	w.contents[tls], w.contents[other], w.reading = "1", "1", reading
	w.mu.Unlock()
	definitions := proxyToSecret()
	definitions[0].Publish = true
	definitions[0].Refs = append(definitions[0].Refs, referent.EdgeDefinition{Resource: "services", Name: "spec.service"})
	w.put(services, "leaf", map[string]any{"secret": "tls"})
	w.put(services, "middle", map[string]any{"service": "leaf"})
	w.put(services, "s", map[string]any{"service": "middle"})
	w.put(proxies, "p", map[string]any{"service": "s"})
	w.Configure(definitions)
	w.pass(time.Second)
}

// after is how long after a change the proxy was reported as changed.
func (w *world) after(change func()) (took []time.Duration) {
	w.Helper()
	w.mu.Lock()
	w.reported = nil
	w.mu.Unlock()
	began := time.Now()
	change()
	w.pass(5 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.reported {
		took = append(took, at.Sub(began))
	}
	return took
}

// Between the change of a leaf and the event of what is above it lies one debounce, however deep the leaf is.
func TestAChangeWaitsForOneDebounce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(w *world)
		want   []time.Duration
	}{
		"the content of a Secret": {func(w *world) { w.set(tls, "2") }, []time.Duration{debounce + reading}},
		"the spec of a custom resource": {
			func(w *world) { w.put(services, "leaf", map[string]any{"secret": "tls", "port": int64(1)}) }, []time.Duration{debounce},
		},
		"several at once": {func(w *world) {
			w.put(services, "leaf", map[string]any{"secret": "tls", "port": int64(1)})
			w.set(tls, "2")
			w.put(proxies, "p", map[string]any{"service": "s", "port": int64(1)})
		}, []time.Duration{debounce + reading}},
		"a burst": {func(w *world) {
			for n := range 9 {
				w.set(tls, fmt.Sprint(n))
				w.put(services, "leaf", map[string]any{"secret": "tls", "port": int64(n)})
				w.pass(10 * time.Millisecond)
			}
		}, []time.Duration{debounce + reading}},
		"a reference to a Secret that was not read before: held until it is": {
			func(w *world) { w.put(services, "leaf", map[string]any{"secret": "other"}) },
			[]time.Duration{debounce, debounce + reading},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.deep()
				first := w.entry()
				assert.Equal(t, test.want, w.after(func() { test.change(w) }))
				assert.NotEqual(t, first, w.entry())
			})
		})
	}
}

// The digests of all levels are written one after the other, without another debounce, also by a change that comes while
// earlier digests are written.
func TestAChangeIsPublishedWithoutAnotherDebounce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const writing = 10 * time.Millisecond
		var written []time.Time
		w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(writing)
			w.mu.Lock()
			defer w.mu.Unlock()
			written = append(written, time.Now())
			return accepted(action)
		})
		w.deep()
		go func() { assert.NoError(t, w.Lead(t.Context())) }()
		w.pass(time.Minute)
		require.Len(t, written, 4)
		written = nil
		began := time.Now()
		w.set(tls, "2")
		w.pass(time.Second)
		require.Len(t, written, 4)
		assert.Equal(t, debounce+reading+4*writing, written[3].Sub(began))
	})
}

// At admission, a custom resource and all that is known to be below it are read at the same time.
func TestAdmissionReadsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deep()
		w.client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(reading) // one at a time: the client holds a lock meanwhile
			return false, nil, nil
		})
		leaf := reference.Ref{Kind: "kafkaservices.kroxylicious.io", Name: "leaf"}
		before, began := w.readCount(), time.Now()
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{leaf})
		require.NoError(t, err)
		assert.Equal(t, w.State("ns", leaf).Entries, states[leaf].Entries)
		assert.Equal(t, 1, w.readCount()-before)
		assert.Equal(t, reading, time.Since(began))
	})
}

// A Secret that changes all the time is read once for each debounce, however short a read is.
func TestConstantChangesAreReadOncePerDebounce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deep()
		before, began := w.readCount(), time.Now()
		took := w.after(func() {
			for n := 0; time.Since(began) < 10*time.Second; n++ {
				w.set(tls, fmt.Sprint(n))
				w.pass(2 * time.Millisecond)
			}
		})
		const most = int(10 * time.Second / debounce)
		assert.InDelta(t, most, w.readCount()-before, 6)
		assert.InDelta(t, most, len(took), 6, "and evaluated as often")
	})
}

// A read that hangs delays what has changed together with it by one more debounce, and nothing afterwards.
func TestAReadThatHangsDelaysOtherChangesLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deep()
		edit := func(port int64) { w.put(services, "leaf", map[string]any{"secret": "tls", "port": port}) }
		w.mu.Lock()
		w.hanging = true
		w.mu.Unlock()
		assert.Equal(t, []time.Duration{2 * debounce}, w.after(func() {
			w.set(tls, "2")
			edit(1)
		}))
		assert.Equal(t, []time.Duration{debounce}, w.after(func() { edit(2) }))
	})
}
