package reload

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// largeObjects is an API server with large objects. Each one that was read is in memory until it is used.
type largeObjects struct {
	client.Reader

	mu   sync.Mutex
	read []string
	used map[string]chan struct{}
}

func (*largeObjects) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(make([]byte, largeread.Size+1)))}, nil
}

func (o *largeObjects) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/", http.NoBody)
	if err != nil {
		return err
	}
	response, err := largeread.Wrap(o).RoundTrip(request)
	if err != nil {
		return err
	}
	o.add(key.Name)
	<-o.used[key.Name]
	_ = response.Body.Close()
	return o.Reader.Get(ctx, key, object, opts...)
}

func (o *largeObjects) add(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.read, name) {
		o.read = append(o.read, name)
	}
}

func TestNamespaceHasOneLargeWorkloadInMemoryAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJobFixture(t, nil, nil)
		api := &largeObjects{Reader: j.API, used: map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{})}}
		l := j.leaderThatReads(t, api)
		for _, key := range []workload.Key{{Namespace: "shop", Name: "a"}, {Namespace: "shop", Name: "b"}, {Namespace: "bank", Name: "c"}} {
			key.Kind = reloadtest.JobKey.Kind
			l.state.Recreations.Add(key, key.Name)
			go func() {
				_, err := l.Reconcile(t.Context(), key)
				assert.NoError(t, err)
			}()
			<-time.After(time.Second) // its slot for writes is overdue, so that the namespace gets another one
			synctest.Wait()
		}
		assert.Equal(t, []string{"a", "c"}, api.read)
		close(api.used["a"])
		synctest.Wait()
		assert.Equal(t, []string{"a", "c", "b"}, api.read)
		close(api.used["c"])
		synctest.Wait()
		close(api.used["b"])
		synctest.Wait()
	})
}

// A re-check reads it in place of its watch.
func TestLargeWorkloadWhoseWatchFailsHasATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJobFixture(t, nil, nil)
		j.watches = failingJobs{}
		used := make(chan struct{})
		close(used)
		api := &largeObjects{Reader: j.API, used: map[string]chan struct{}{reloadtest.JobKey.Name: used}}
		l := j.leaderThatReads(t, api)
		read, ok := l.tracking.Get(t.Context(), reloadtest.JobKey)
		assert.True(t, ok, "the Job is read live")
		assert.Equal(t, "uid-1", read.UID())
		assert.Equal(t, []string{reloadtest.JobKey.Name}, api.read)
	})
}
