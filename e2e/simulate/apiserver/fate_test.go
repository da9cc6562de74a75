package apiserver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/apiserver"
	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// gate has the same fate for every request.
func gate(f apiserver.Fate) func(context.Context, *world.Call) apiserver.Fate {
	return func(context.Context, *world.Call) apiserver.Fate { return f }
}

func TestFateDecidesAboutReplyAndStorage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fate    apiserver.Fate
		fails   bool
		code    int
		stored  bool
		replies int
		lost    bool
	}{
		"served":  {apiserver.Fate{}, false, 201, true, 1, false},
		"refused": {apiserver.Fate{Refuse: &metav1.Status{Code: 429, Reason: metav1.StatusReasonTooManyRequests}}, false, 429, false, 1, false},
		"dropped": {apiserver.Fate{Drop: true}, true, 0, false, 0, false},
		"lost":    {apiserver.Fate{Lose: true}, true, 0, true, 1, true},
		"cut":     {apiserver.Fate{CutAfter: 10}, true, 0, true, 1, true},
		"whole":   {apiserver.Fate{CutAfter: 1 << 20}, false, 201, true, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var replies []world.Reply
			s := server(t, func(o *apiserver.Options) {
				o.Gate = gate(tc.fate)
				o.OnReply = func(r world.Reply) { replies = append(replies, r) }
			})
			h := httptest.NewServer(s)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+configMaps, http.NoBody)
			require.NoError(t, err)
			r.Body = io.NopCloser(body(`{"metadata":{"name":"app"}}`))
			answer, err := h.Client().Do(r)
			if err == nil {
				_, err = io.ReadAll(answer.Body)
				_ = answer.Body.Close()
			}
			h.Close() // it waits for the handler
			assert.Equal(t, tc.fails, err != nil, "%v", err)
			if !tc.fails {
				assert.Equal(t, tc.code, answer.StatusCode)
			}
			if tc.code == 429 {
				assert.Equal(t, "1", answer.Header.Get("Retry-After"))
			}
			_, stored := s.Get(worldKey("configmaps", "app"))
			assert.Equal(t, tc.stored, stored)
			require.Len(t, replies, tc.replies)
			if tc.replies > 0 {
				assert.Equal(t, tc.lost, replies[0].Lost)
				assert.Equal(t, "create", replies[0].Call.Verb)
			}
		})
	}
}

// A request that the server has received is served although its client is gone by then, if it is late.
func TestLateRequestIsServedWithoutItsClient(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"late": true, "given up": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			s := server(t, func(o *apiserver.Options) {
				o.Gate = func(context.Context, *world.Call) apiserver.Fate {
					leave()
					return apiserver.Fate{Late: late}
				}
			})
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, configMaps, body(`{"metadata":{"name":"app"}}`))
			func() {
				defer func() { _ = recover() }()
				s.ServeHTTP(httptest.NewRecorder(), r)
			}()
			_, stored := s.Get(worldKey("configmaps", "app"))
			assert.Equal(t, late, stored)
		})
	}
}

func TestHangingRequestEndsWithTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(t, func(o *apiserver.Options) { o.Gate = gate(apiserver.Fate{Hang: true}) })
		ended := false
		go func() {
			defer func() { ended = recover() != nil }()
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, configMaps, http.NoBody))
		}()
		sleep(time.Hour)
		synctest.Wait()
		assert.False(t, ended, "the request hangs")
		s.Stop()
		synctest.Wait()
		assert.True(t, ended, "the server has stopped")
	})
}

func TestGateOrdersRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pass := make(chan struct{})
		var calls []*world.Call
		s := server(t, func(o *apiserver.Options) {
			o.Gate = func(ctx context.Context, c *world.Call) apiserver.Fate {
				calls = append(calls, c)
				select {
				case <-pass:
				case <-ctx.Done():
				}
				return apiserver.Fate{}
			}
		})
		go func() { post(t, s, configMaps+"?dryRun=All", `{"metadata":{"name":"app"}}`) }()
		synctest.Wait()
		require.Len(t, calls, 1)
		assert.Equal(t, "create", calls[0].Verb)
		assert.True(t, calls[0].DryRun, "the request has dryRun=All")
		assert.False(t, calls[0].Write(), "a dry run writes nothing")
		assert.Equal(t, "shop", calls[0].Key.Namespace)
		assert.JSONEq(t, `{"metadata":{"name":"app"}}`, string(calls[0].Body))
		close(pass)
		synctest.Wait()
	})
}

func TestCommitsAreReportedInOrder(t *testing.T) {
	t.Parallel()
	var commits []world.Commit
	s := server(t, func(o *apiserver.Options) { o.OnCommit = func(c world.Commit) { commits = append(commits, c) } })
	post(t, s, configMaps, `{"metadata":{"name":"app"}}`).object()
	merge(t, s, configMaps+"/app", `{"data":{"a":"b"}}`).object()
	remove(t, s, configMaps+"/app")
	require.Len(t, commits, 4, "the namespace is the first")
	for n, c := range commits {
		assert.EqualValues(t, n+2, c.Version)
	}
	assert.Nil(t, commits[0].Call)
	assert.Nil(t, commits[1].Old)
	assert.Equal(t, "create", commits[1].Call.Verb)
	assert.Equal(t, commits[1].New, commits[2].Old)
	assert.Equal(t, commits[2].New, commits[2].Sent)
	assert.Nil(t, commits[3].New)
}
