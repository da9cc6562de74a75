package keyring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/keyring"
)

// silence is a connection to an API server that has no Secret, on which requests of one method have no answer. Lists and watches have none
// either.
type silence struct {
	method string

	mu   sync.Mutex
	sent map[string][]time.Time
}

func (s *silence) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/"+name) || r.Method != http.MethodGet {
		s.mu.Lock()
		s.sent[r.Method] = append(s.sent[r.Method], time.Now())
		s.mu.Unlock()
		if r.Method != s.method {
			return notFound(r)
		}
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func notFound(r *http.Request) (*http.Response, error) {
	status := apierrors.NewNotFound(corev1.Resource("secrets"), name).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	return &http.Response{
		StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, err
}

// gaps are the times between the first requests of the method.
func (s *silence) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []time.Duration
	for n, at := range s.sent[s.method] {
		if n > 0 {
			gaps = append(gaps, at.Sub(s.sent[s.method][n-1]))
		}
	}
	return gaps
}

func overSilence(t *testing.T, method string) (*keyring.Keyring, *silence) {
	t.Helper()
	s := &silence{method: method, sent: map[string][]time.Time{}}
	k, err := keyring.New(keyring.Options{
		Config: &rest.Config{Host: "http://api.example.com"}, HTTPClient: &http.Client{Transport: s}, Namespace: namespace, Name: name,
		Log: logr.Discard(),
	})
	require.NoError(t, err)
	return k, s
}

// Without a key nothing is reloaded: a request on a dead connection must not be waited for without end.
func TestRequestThatHangsIsGivenUpAfterTenSecondsAndRepeated(t *testing.T) {
	t.Parallel()
	for what, method := range map[string]string{"read": http.MethodGet, "create": http.MethodPost} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k, s := overSilence(t, method)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- k.Start(ctx) }()
				<-time.After(15 * time.Second)
				synctest.Wait()
				gaps := s.gaps()
				stop()
				require.NoError(t, <-done)
				require.NotEmpty(t, gaps, "it is repeated")
				assert.GreaterOrEqual(t, gaps[0], 10*time.Second, "a slow answer is waited for")
				assert.Less(t, gaps[0], 11*time.Second)
			})
		})
	}
}

// A caller that has met an unknown key waits for a read.
func TestRefreshThatHangsIsGivenUpAfterTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, _ := overSilence(t, http.MethodGet)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		began := time.Now()
		_, err := k.Refresh(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(began))
	})
}

// The webhook waits for a short time only. Its caller must not be what ends a read that the loop waits for, too.
func TestReadOfRefreshOutlivesTheCallerThatHasBegunIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, s := overSilence(t, http.MethodGet)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := k.Refresh(soon)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		began := time.Now()
		_, err = k.Refresh(t.Context())
		require.ErrorContains(t, err, "read the Secret of the digest key")
		assert.Equal(t, 9*time.Second, time.Since(began), "it is the same read")
		assert.Empty(t, s.gaps(), "it is the same read")
	})
}
