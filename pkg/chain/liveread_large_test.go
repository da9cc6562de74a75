package chain_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// largeAnswers answers each request with a large response.
type largeAnswers struct{}

func (largeAnswers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(make([]byte, largeread.Size+1)))}, nil
}

func TestNamespaceHasOneLargeCustomResourceInMemoryAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.referToMany(16)
		inMemory, largest, reads := 0, 0, 0
		w.getting = func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api/", http.NoBody)
			if err != nil {
				return err
			}
			response, err := largeread.Wrap(largeAnswers{}).RoundTrip(request)
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }()
			w.mu.Lock()
			inMemory++
			reads, largest = reads+1, max(largest, inMemory)
			w.mu.Unlock()
			<-time.After(10 * time.Millisecond)
			w.mu.Lock()
			defer w.mu.Unlock()
			inMemory--
			return nil
		}
		states, err := chain.ReadLive(t.Context(), w, w.Chain, "ns", []reference.Ref{proxy})
		require.NoError(t, err)
		assert.Empty(t, states[proxy].Unverified)
		assert.Equal(t, 17, reads, "all are read in the end")
		assert.Equal(t, 1, largest)
	})
}

// A tenant with many large custom resources must not fill the memory where the API server does not stream lists.
func TestLargeCustomResourcesAreListedOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var limits []int64
		w.listed = func(ctx context.Context, limit int64) error {
			w.mu.Lock()
			limits = append(limits, limit)
			w.mu.Unlock()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://api/?limit=%d", limit), http.NoBody)
			if err != nil {
				return err
			}
			response, err := largeread.Wrap(largeAnswers{}).RoundTrip(request)
			if err != nil {
				return err
			}
			return response.Body.Close()
		}
		w.Configure(proxyToSecret()[:1])
		w.pass(time.Second)
		assert.Equal(t, []int64{10, 2, 1}, limits)
		assert.NoError(t, w.WaitForSync(t.Context()))
	})
}
