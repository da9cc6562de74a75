package listwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A permission or a kind may be missing for as long as the program runs, and a list of all objects is expensive.
func TestAttemptsThatFailForAnHourAreRare(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no permission"))
	unserved := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}}
	endsAtOnce := func() (watch.Interface, error) {
		w := watch.NewFake()
		w.Stop()
		return w, nil
	}
	fails := func(err error) func() (watch.Interface, error) {
		return func() (watch.Interface, error) { return nil, err }
	}
	const slow, fast = 180, 360 // at a pause of 20 and 10 s; each is up to half longer
	for name, tc := range map[string]struct {
		list        error
		watch       func() (watch.Interface, error)
		least, most int
	}{
		"no permission":                          {forbidden, fails(forbidden), slow * 2 / 3, slow + 10},
		"the credentials are not accepted":       {apierrors.NewUnauthorized("expired"), fails(forbidden), slow * 2 / 3, slow + 10},
		"the kind is not served":                 {unserved, fails(unserved), slow * 2 / 3, slow + 10},
		"no permission to watch":                 {nil, fails(forbidden), slow * 2 / 3, slow + 10},
		"a proxy does not pass on watches":       {nil, fails(apierrors.NewTimeoutError("gateway", 0)), slow * 2 / 3, slow + 10},
		"watches are accepted, and end at once":  {nil, endsAtOnce, slow * 2 / 3, slow + 10},
		"the API server is away":                 {errors.New("away"), fails(errors.New("away")), fast * 2 / 3, fast + 10},
		"the API server cannot serve for a time": {apierrors.NewInternalError(errors.New("etcd")), fails(errors.New("etcd")), fast * 2 / 3, fast + 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lists := 0
				l := &Loop[*corev1.ConfigMap]{
					Log: logr.Discard(), Sink: &taken{},
					List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
						lists++
						return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, tc.list
					},
					Watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
						if o.SendInitialEvents != nil {
							return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
						}
						return tc.watch()
					},
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				l.Run(ctx)
				assert.GreaterOrEqual(t, lists, tc.least)
				assert.LessOrEqual(t, lists, tc.most)
			})
		})
	}
}

// It refuses requests until it has read the roles, which takes a second or so.
func TestAPIServerThatStartsIsAskedSoon(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no permission"))
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	for name, outage := range map[string]int{"after a moment": 3, "after some minutes": 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard()})
				w := <-s.watches
				<-time.After(steady)
				s.refused, s.fails = []error{refused}, append(slices.Repeat([]error{refused}, outage), forbidden)
				w.Stop()
				<-s.watches
				synctest.Wait()
				last := s.lists[len(s.lists)-2:]
				assert.LessOrEqual(t, last[1].Sub(last[0]), 15*time.Second)
			})
		})
	}
}

// The pauses of an earlier failure are of no account to a watch that has worked.
func TestPausesBeginAnewWhereAWatchHasWorked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{fails: slices.Repeat([]error{errors.New("away")}, 20)}
		run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard()})
		w := <-s.watches
		<-time.After(steady)
		ended := time.Now()
		w.Error(&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired})
		<-s.watches
		synctest.Wait()
		require.Len(t, s.lists, 22)
		assert.LessOrEqual(t, s.lists[21].Sub(ended), 300*time.Millisecond)
	})
}

// An API server behind a load balancer ends the watch after a time and refuses the next one; another one lists at once.
func TestWatchThatHasWorkedIsOpenedAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused time.Time
		longest, version, listed := time.Duration(0), 5, false
		l := &Loop[*corev1.ConfigMap]{
			Log: logr.Discard(), Sink: &taken{},
			List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				if !refused.IsZero() {
					longest = max(longest, time.Since(refused))
				}
				listed = true
				version++
				return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}}, nil
			},
			Watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				switch {
				case o.SendInitialEvents != nil:
					return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
				case !listed:
					refused = time.Now()
					return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
				}
				listed = false
				version++
				w := watch.NewRaceFreeFake()
				go func() {
					<-time.After(15 * time.Second)
					w.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: strconv.Itoa(version)}})
					<-time.After(5 * time.Second)
					w.Stop()
				}()
				return w, nil
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		l.Run(ctx)
		assert.Positive(t, longest)
		assert.LessOrEqual(t, longest, longestPause*3/2)
		<-time.After(time.Minute) // until the last watch has ended
	})
}

// Credentials that have expired, and permissions that are missing, can be there again at any time.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failure error
		longest time.Duration
	}{
		"no answer":    {errors.New("away"), 10 * time.Second},
		"unauthorized": {apierrors.NewUnauthorized("the token has expired"), 20 * time.Second},
		"forbidden":    {apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no permission")), 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{fails: slices.Repeat([]error{tc.failure}, 20)}
				run(t, s, &Loop[*corev1.ConfigMap]{Log: logr.Discard()})
				<-s.watches
				synctest.Wait()
				require.Len(t, s.lists, 21)
				first := s.lists[1].Sub(s.lists[0])
				assert.GreaterOrEqual(t, first, 200*time.Millisecond)
				assert.LessOrEqual(t, first, 300*time.Millisecond)
				for n := 9; n < 21; n++ {
					pause := s.lists[n].Sub(s.lists[n-1])
					assert.GreaterOrEqual(t, pause, tc.longest)
					assert.LessOrEqual(t, pause, tc.longest*3/2)
				}
			})
		})
	}
}
