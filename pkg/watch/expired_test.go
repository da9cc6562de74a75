package watch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	for name, before := range map[string]func(s *apiServer){
		"after a watch that lasts": func(*apiServer) { pass(time.Minute) },
		"after an event":           func(s *apiServer) { s.Update(object("a")); synctest.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t bubble) {
				s := newServer(t, object("a"))
				bulk := startBulk(t, s, watch.Config{})
				for range 5 {
					before(s)
					requests := len(s.Requests())
					s.Compact()
					s.Drop(nil)
					for len(s.Requests()) < requests+2 { // the watch that fails, and the list
						pass(50 * time.Millisecond)
					}
				}
				_, err := bulk.LastWatchError()
				require.NoError(t, err)
			})
		})
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
			for len(s.Requests()) < requests+3 { // the watch that fails, the list, and the next watch
				pass(50 * time.Millisecond)
			}
		}
		_, err := bulk.LastWatchError()
		require.ErrorContains(t, err, "the watch broke")
	})
}
