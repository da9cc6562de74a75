package watch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pod-reloader/pod-reloader/pkg/watch"
)

// client-go lists again after a 410. It asks for a streamed list again without a pause.
func TestPermanent410IsReportedAndRetriedWithPauses(t *testing.T) {
	t.Parallel()
	expired := failure(410, "Expired")
	for name, server := range map[string]faults{
		"everything":                       {status: 410},
		"lists, which are not streamed":    {status: 410, noStreamList: true},
		"watches, after lists":             {watchStatus: 410, noStreamList: true},
		"watches and streamed lists":       {watchStatus: 410},
		"in watches, after lists":          {watchError: expired, noStreamList: true},
		"in watches and streamed lists":    {watchError: expired},
		"in watches, after streamed lists": {expireAfterStreamedList: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				var errs journal
				s := newServer(t, object("a"))
				s.Fault(server)
				bulk := startBulk(t, s, watch.Config{OnWatchError: func(_ context.Context, err error) { errs.add("%s", err) }})
				pass(10 * time.Minute)
				at, err := bulk.LastWatchError()
				require.ErrorContains(t, err, "injected")
				assert.Less(t, time.Since(at), time.Minute, "retried")
				assert.Greater(t, len(errs.read()), 10)
				assert.Less(t, len(s.Requests()), 200, "with pauses")
				assert.Equal(t, server.status == 0, bulk.IsSynced())
				s.Fault(faults{})
				pass(time.Minute)
				s.Create(object("b"))
				pass(time.Second)
				assert.Equal(t, []string{"a", "b"}, names(bulk.Store().List()))
			})
		})
	}
}

// Each of these versions was not listed a moment ago.
func TestVersionsThatExpireNowAndThenAreNoError(t *testing.T) {
	t.Parallel()
	expire := func(s *apiServer) { s.Drop(failure(410, "Expired")) }
	for name, expires := range map[string]func(s *apiServer){
		"after a watch that lasts":         func(s *apiServer) { pass(time.Minute); s.Compact(); s.Drop(nil) },
		"after an event":                   func(s *apiServer) { s.Update(object("a")); synctest.Wait(); s.Compact(); s.Drop(nil) },
		"after a silent watch":             (*apiServer).Compact, // such a watch is ended here
		"in a watch, after one that lasts": func(s *apiServer) { pass(time.Minute); untilListed(s, expire); expire(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				s := newServer(t, object("a"))
				bulk := startBulk(t, s, watch.Config{})
				for range 5 {
					untilListed(s, expires)
				}
				_, err := bulk.LastWatchError()
				require.NoError(t, err)
			})
		})
	}
}

func TestThirdWatchInARowThatExpiresAtOnceIsAnError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		bulk := startBulk(t, s, watch.Config{})
		for range 2 {
			untilListed(s, func(s *apiServer) { s.Drop(failure(410, "Expired")) })
			_, err := bulk.LastWatchError()
			require.NoError(t, err)
		}
		s.Drop(failure(410, "Expired"))
		synctest.Wait()
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "injected")
	})
}

// untilListed waits for the streamed list that follows.
func untilListed(s *apiServer, expires func(s *apiServer)) {
	lists := func() (n int) {
		for _, r := range s.Requests() {
			if r.Get("sendInitialEvents") == "true" {
				n++
			}
		}
		return n
	}
	before := lists()
	expires(s)
	for lists() == before {
		pass(50 * time.Millisecond)
	}
}

// An API server that starts again has no old versions: its watch that lasted breaks, and the next one gets 410.
func TestVersionsThatExpireWithTheirServerAreNoError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		s := newServer(t, object("a"))
		s.Fault(faults{noStreamList: true})
		bulk := startBulk(t, s, watch.Config{})
		for range 5 {
			pass(time.Minute)
			requests := len(s.Requests())
			s.Compact()
			s.Break(errors.New("connection reset by peer"))
			for len(s.Requests()) < requests+3 { // the watch that fails, the list, and its watch
				pass(50 * time.Millisecond)
			}
		}
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "the watch broke")
	})
}

// paged is a client whose first list has a second page, which expires.
type paged struct {
	scripted
	lists journal
}

func (p *paged) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return p
}

func (p *paged) Namespace(string) dynamic.ResourceInterface { return p }

func (p *paged) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	p.lists.add("continue=%s limit=%d", options.Continue, options.Limit)
	if options.Continue != "" {
		return nil, &apierrors.StatusError{ErrStatus: *failure(410, "Expired")}
	}
	list, err := p.scripted.List(ctx, options)
	if len(p.lists.entries) == 1 {
		list.SetContinue("page-2")
	}
	return list, err
}

func TestPageThatExpiresIsNoError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t bubble) {
		client := &paged{}
		bulk, err := watch.NewBulk(watch.Config{GVR: ingresses, IndexBy: byName}, client)
		require.NoError(t, err)
		start(t, bulk)
		_, err = bulk.LastWatchError()
		require.NoError(t, err)
		assert.Equal(t, []string{"continue= limit=10", "continue=page-2 limit=10", "continue= limit=0"}, client.lists.read())
		assert.Equal(t, []string{"a"}, names(bulk.Store().List()))
	})
}
