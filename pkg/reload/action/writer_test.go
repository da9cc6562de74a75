package action

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/largeread"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/watchhealth"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestRetryWaitsBehindFirstAttempts(t *testing.T) {
	t.Parallel()
	actions, s := newActions(Options{}, &reloadtest.Outbox{}), reloadtest.Web(t)
	var order []workload.Key
	actions.slots = inflight.New(inflight.Options{}, func(key workload.Key) { order = append(order, key) })
	blocks, first := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "blocks"}}, gather.Subject{Key: workload.Key{Namespace: "shop", Name: "first"}}
	require.True(t, actions.MayWrite(blocks, inflight.Urgent), "the only slot is free")
	actions.backoff.When(s.Key, state.NeedsUser)
	require.False(t, actions.MayWrite(s, inflight.Urgent), "the only slot is taken")
	require.False(t, actions.MayWrite(first, inflight.Background), "the only slot is still taken")
	actions.slots.Leave(s.Key)
	actions.slots.Leave(first.Key)
	actions.slots.Leave(blocks.Key)
	assert.Equal(t, []workload.Key{first.Key}, order)
}

func TestAnsweredWriteIsNoHangingOne(t *testing.T) {
	t.Parallel()
	actions, s := newActions(Options{}, &reloadtest.Outbox{}), reloadtest.Web(t)
	denied := errors.New("denied")
	err := actions.write(t.Context(), s, func(context.Context) error { return denied })
	require.ErrorIs(t, err, denied)
	require.NotErrorIs(t, err, errNoAnswer)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = actions.write(ended, s, func(ctx context.Context) error { return ctx.Err() })
	assert.NotErrorIs(t, err, errNoAnswer, "the process ends")
}

// busy answers each request with 429.
type busy struct{}

func (busy) RoundTrip(*http.Request) (*http.Response, error) {
	body := `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "TooManyRequests", "code": 429}`
	header := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}}
	return &http.Response{StatusCode: http.StatusTooManyRequests, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func TestRequestAnsweredWithTooManyRequestsIsNoHangingOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		web := reloadtest.Web(t)
		gvk := web.Object.Kind.GroupVersionKind
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(gvk, meta.RESTScopeNamespace)
		overloaded, err := client.New(&rest.Config{Host: "https://api", Transport: (&watchhealth.Monitor{}).Wrap(busy{})}, client.Options{Mapper: mapper})
		require.NoError(t, err)
		actions := newActions(Options{Client: overloaded, Gather: gather.Gatherer{APIReader: overloaded}}, &reloadtest.Outbox{})
		began := time.Now()
		_, written := actions.merge(t.Context(), web, map[string]any{})
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		read := actions.gather.APIReader.Get(t.Context(), client.ObjectKey{Namespace: web.Key.Namespace, Name: web.Key.Name}, object)
		for _, err := range []error{written, read} {
			assert.True(t, apierrors.IsTooManyRequests(err), "the answer is 429, not %v", err)
			assert.NotErrorIs(t, err, errNoAnswer)
		}
		assert.Equal(t, began, time.Now(), "the loop pauses, not the client")
	})
}

// The client may return what has just arrived although the time is over.
func TestAnswerInTheLastMomentIsAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, withWriteTimeout(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}))
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := withWriteTimeout(limited, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.Error(t, err)
		assert.NotErrorIs(t, err, errNoAnswer, "the time of the caller is over, which says nothing about the request")
	})
}

// unanswered is a reader whose reads hang.
type unanswered struct{ client.Reader }

func (unanswered) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestReadThatHangsIsGivenUpAndCountsAsALateAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, start := reloadtest.Web(t), time.Now()
		actions := newActions(Options{Gather: gather.Gatherer{APIReader: unanswered{}}}, &reloadtest.Outbox{})
		_, err := actions.gather.Stored(ctx, s)
		require.ErrorIs(t, err, errNoAnswer)
		assert.Equal(t, 10*time.Second, time.Since(start))
		require.True(t, actions.MayWrite(s, inflight.Urgent), "the late answer leaves one slot")
		actions.slots.Observe(s.Key.Namespace, 0)
		other := gather.Subject{Key: workload.Key{Namespace: s.Key.Namespace, Name: "other"}}
		assert.False(t, actions.MayWrite(other, inflight.Urgent), "one answer in time earns no slot after that")
	})
}

// largeServer answers each request with an object, or a list, of more than largeread.Size. The rest of it never comes where it stalls.
type largeServer struct{ stalls *bool }

func (l largeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body io.Reader = strings.NewReader(
		`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}` + strings.Repeat(" ", largeread.Size))
	if *l.stalls {
		body = io.MultiReader(body, stalled{r.Context()})
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(body)}, nil
}

// stalled is the rest of a body that never comes.
type stalled struct {
	ctx context.Context //nolint:containedctx // a response body has no context of its own
}

func (s stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestReadThatWaitsForItsTurnIsNoHangingOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		web, stalls := reloadtest.Web(t), false
		gvk := web.Object.Kind.GroupVersionKind
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(gvk, meta.RESTScopeNamespace)
		api, err := client.New(&rest.Config{Host: "https://api", Transport: largeread.Wrap(largeServer{&stalls})}, client.Options{Mapper: mapper})
		require.NoError(t, err)
		actions := newActions(Options{Gather: gather.Gatherer{APIReader: api}}, &reloadtest.Outbox{})
		limit := largeread.New(1, 1)
		before, end := limit.Begin(t.Context(), web.Key.Namespace)
		_, err = actions.gather.Stored(before, web)
		require.NoError(t, err)
		scoped, done := limit.Begin(t.Context(), web.Key.Namespace)
		_, err = actions.gather.Stored(scoped, web)
		require.ErrorIs(t, err, largeread.ErrWaiting)
		require.NotErrorIs(t, err, errNoAnswer)
		time.AfterFunc(writeLimit-time.Millisecond, end)
		stalls = true
		_, err = actions.gather.Stored(scoped, web)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, errNoAnswer, "the turn came late")
		stalls = false
		_, err = actions.gather.Stored(scoped, web)
		require.NoError(t, err)
		done()
		err = actions.gather.List(largeread.Refuse(t.Context()), gvk, 1, func(unstructured.Unstructured) {})
		require.ErrorIs(t, err, largeread.ErrLarge, "the client passes it on")
	})
}
