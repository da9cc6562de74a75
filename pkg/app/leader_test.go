package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseReader reads a lease, or fails.
type leaseReader func() (coordinationv1.LeaseSpec, error)

func (r leaseReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("leases are not listed")
}

func (r leaseReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) (err error) {
	object.(*coordinationv1.Lease).Spec, err = r()
	return err
}

// logged returns what a replica logs until it leads, after a time, or ends. It looks at the lease after 20 s, and each 20 s from then on.
func logged(ctx context.Context, t *testing.T, after time.Duration, read leaseReader) (lines []string) {
	t.Helper()
	elected := make(chan struct{})
	time.AfterFunc(after, func() { close(elected) })
	require.NoError(t, leadership{
		lease: types.NamespacedName{Namespace: "home", Name: "reloader"}, every: 20 * time.Second, elected: elected, reader: read,
		log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
	}.Start(ctx))
	return lines
}

// held returns a lease of 15 seconds that was renewed some time ago.
func held(holder string, ago time.Duration) coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-ago))),
	}
}

func TestLogSaysWhoLeads(t *testing.T) {
	t.Parallel()
	const other = `"msg"="another replica leads" "lease"="home/reloader" "leader"="other"`
	const third = `"msg"="another replica leads" "lease"="home/reloader" "leader"="third"`
	const leads = `"msg"="this replica leads" "lease"="home/reloader"`
	const free = `"msg"="no replica leads, and nothing is reloaded" "lease"="home/reloader" "renewed"="`
	const unreadable = `"msg"="cannot read the lease" "error"="forbidden" "lease"="home/reloader"`
	const late = time.Hour + time.Second
	type look struct {
		holder  string
		renewed time.Duration // before the lease is read
		err     error
	}
	released, forbidden := look{}, look{err: errors.New("forbidden")}
	for name, c := range map[string]struct {
		after time.Duration // until this replica leads
		looks []look        // the last one is repeated
		want  []string
	}{
		"at once":              {time.Second, []look{{holder: "other"}}, []string{leads}},
		"within the lease":     {19 * time.Second, []look{{holder: "other"}}, []string{leads}},
		"later":                {late, []look{{holder: "other"}}, []string{other, leads}},
		"renewed long ago":     {late, []look{{holder: "other", renewed: 15 * time.Second}}, []string{other, leads}},
		"past its end":         {late, []look{{holder: "other", renewed: 21 * time.Second}}, []string{free + `1999-12-31T23:59:59Z"`, leads}},
		"released long ago":    {late, []look{{renewed: time.Minute}}, []string{free, leads}},
		"without a permission": {late, []look{forbidden}, []string{unreadable, leads}},
		"permission withdrawn": {late, []look{{holder: "other"}, {holder: "other"}, forbidden}, []string{other, unreadable, leads}},
		"leader dies":          {late, []look{{holder: "other"}, {holder: "other", renewed: time.Minute}}, []string{other, free, leads}},
		"leader returns":       {late, []look{forbidden, {renewed: time.Hour}, {holder: "other"}}, []string{unreadable, free, other, leads}},
		"another leader":       {late, []look{{holder: "other"}, {holder: "third"}}, []string{other, third, leads}},
		"between two leaders":  {late, []look{{holder: "other"}, released, {holder: "other"}}, []string{other, leads}},
		"leader killed":        {41 * time.Second, []look{{holder: "other"}, {holder: "other", renewed: 20 * time.Second}}, []string{other, leads}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := 0
				lines := logged(t.Context(), t, c.after, func() (coordinationv1.LeaseSpec, error) {
					look := c.looks[min(made, len(c.looks)-1)]
					made++
					return held(look.holder, look.renewed), look.err
				})
				require.Len(t, lines, len(c.want), lines)
				for i, want := range c.want {
					assert.Contains(t, lines[i], want)
				}
				assert.Equal(t, int((c.after-time.Second)/(20*time.Second)), made, "requests")
			})
		})
	}
}

// A look at the lease that the end of the program interrupts has found nothing.
func TestLogSaysNothingOfTheLeaseAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		assert.Empty(t, logged(ctx, t, time.Hour, func() (coordinationv1.LeaseSpec, error) {
			cancel()
			return coordinationv1.LeaseSpec{}, ctx.Err()
		}))
	})
}

func TestLeadershipEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, leadership{every: time.Hour}.Start(ctx))
	assert.False(t, leadership{}.NeedLeaderElection(), "a standby reports, too")
}

// A replica that has lost its lease, or stops, serves its metrics as long as admission.
func TestLeaderMetricIsZeroAfterTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop, server, elects := newPart(), newPart(), atomic.Bool{}
		led := &leadingLoop{starter: loop, elected: elects.Load}
		metric := func() float64 {
			synctest.Wait()
			return testutil.ToFloat64(led.metric())
		}
		l := newLifecycle(led, server)
		done := make(chan error, 1)
		go func() { done <- l.run(t.Context()) }()
		assert.Zero(t, metric())
		elects.Store(true)
		assert.InDelta(t, 1, metric(), 0)

		loop.fail <- errors.New("leader election lost")
		assert.Zero(t, metric())
		assert.Empty(t, server.ended, "admission and the metrics go on")
		require.ErrorContains(t, <-done, "leader election lost")
	})
}
