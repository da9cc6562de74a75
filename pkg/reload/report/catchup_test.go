package report

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// pages is an API server with two pages of Events in each namespace; fails are the answers before that.
type pages struct {
	fails    []error
	requests []string
}

func (p *pages) Names(ctx context.Context, namespace string, o metav1.ListOptions, use func(namespace, name string)) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	p.requests = append(p.requests, namespace+"?"+o.FieldSelector+"&"+o.Continue)
	if len(p.fails) > 0 {
		err := p.fails[0]
		p.fails = p.fails[1:]
		if err != nil {
			return "", err
		}
	}
	if o.Continue == "" {
		use(namespace, "a")
		use("other", "a")
		return "more", nil
	}
	use(namespace, "b")
	return "", nil
}

func TestEventsOfEarlierLeadersAreListed(t *testing.T) {
	t.Parallel()
	const selector = "reason=Reloaded,reportingController=pod-reloader"
	away := apierrors.NewServiceUnavailable("away")
	forbidden := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))
	expired := apierrors.NewResourceExpired("too old")
	unserved := apierrors.NewNotFound(corev1.Resource("events"), "")
	proxy := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", corev1.Resource("events"), "", "no route", 0, true)
	for name, tc := range map[string]struct {
		namespaces []string
		fails      []error
		requests   []string
		known      []string
		err        error
		takes      time.Duration
	}{
		"in the cluster": {requests: []string{"?" + selector + "&", "?" + selector + "&more"}, known: []string{"/a", "other/a", "/b"}},
		"in each namespace": {
			namespaces: []string{"shop", "pay"},
			requests:   []string{"shop?" + selector + "&", "shop?" + selector + "&more", "pay?" + selector + "&", "pay?" + selector + "&more"},
			known:      []string{"shop/a", "shop/b", "pay/a", "pay/b", "other/a"},
		},
		"after a failure": {
			fails: []error{away, away, nil, away}, takes: 4 * time.Second, known: []string{"/a", "other/a", "/b"},
			requests: []string{"?" + selector + "&", "?" + selector + "&", "?" + selector + "&", "?" + selector + "&more", "?" + selector + "&more"},
		},
		"not while it is away": {
			fails: []error{away, away, away, away}, err: away, takes: 7 * time.Second,
			requests: []string{"?" + selector + "&", "?" + selector + "&", "?" + selector + "&", "?" + selector + "&"},
		},
		"after a 404 of a proxy": {
			fails: []error{proxy}, takes: time.Second, known: []string{"/a", "other/a", "/b"},
			requests: []string{"?" + selector + "&", "?" + selector + "&", "?" + selector + "&more"},
		},
		"not served":      {fails: []error{unserved}, err: unserved, requests: []string{"?" + selector + "&"}},
		"not allowed":     {fails: []error{forbidden}, err: forbidden, requests: []string{"?" + selector + "&"}},
		"more is too old": {fails: []error{nil, expired}, err: expired, requests: []string{"?" + selector + "&", "?" + selector + "&more"}, known: []string{"/a", "other/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &pages{fails: tc.fails}
				l := eventList{api: api, namespaces: tc.namespaces}
				began := time.Now()
				names, err := l.reloads(t.Context())
				assert.Equal(t, tc.takes, time.Since(began))
				require.ErrorIs(t, err, tc.err)
				assert.Equal(t, tc.requests, api.requests)
				assert.Len(t, names, len(tc.known))
				for _, name := range tc.known {
					assert.True(t, names[state.DigestOf(name)], name)
				}
			})
		})
	}
}

// Whatever becomes of the list, the workloads that wait for it are looked at again.
func TestFailedListDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out, now := emitter()
		api := &pages{fails: []error{apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))}}
		since := *now
		l.with.Leads.Begin(since)
		s := webOf().with(reloadAt(now.Add(-time.Minute), "1"))
		l.EmitReloads(s)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.CatchUp(ctx, api, nil, func(...workload.Key) {}) }()
		synctest.Wait()
		l.EmitReloads(s)
		assert.Len(t, out.messages, 1, "that it exists is known by the refusal to create it again")
		time.Sleep(reportedFor) //nolint:forbidigo // the time is fake
		synctest.Wait()
		assert.Nil(t, l.catchUp.names, "nothing asks for it any more")
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestFailedListIsLoggedUnlessTheLeaderStops(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))
	for name, tc := range map[string]struct {
		fails   []error
		stopped bool
		lines   int
	}{
		"listed":             {},
		"refused":            {fails: []error{forbidden}, lines: 1},
		"the leader stopped": {fails: []error{forbidden}, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, _, _ := emitter()
				var lines []string
				l.with.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				listed := func(...workload.Key) { cancel() }
				if tc.stopped {
					cancel()
				}
				require.NoError(t, l.CatchUp(ctx, &pages{fails: tc.fails}, nil, listed))
				assert.Len(t, lines, tc.lines)
				for _, line := range lines {
					assert.Contains(t, line, forbidden.Error())
				}
			})
		})
	}
}
