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
type leaseReader struct {
	client.Reader

	lease coordinationv1.LeaseSpec
	err   error
}

func (r leaseReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*coordinationv1.Lease).Spec = r.lease
	return r.err
}

func TestLogSaysWhoLeads(t *testing.T) {
	t.Parallel()
	const other = `"msg"="another replica leads" "lease"="home/reloader" "leader"="other"`
	const leads = `"msg"="this replica leads" "lease"="home/reloader"`
	const free = `"msg"="no replica leads, and nothing is reloaded" "lease"="home/reloader" "renewed"="2000-01-01T00:00:`
	for name, c := range map[string]struct {
		after   time.Duration // until this replica leads
		holder  string
		renewed time.Duration // before the lease is read
		err     error
		want    []string
	}{
		"at once":              {after: time.Second, holder: "other", want: []string{leads}},
		"later":                {after: time.Hour, holder: "other", want: []string{other, leads}},
		"renewed long ago":     {after: time.Hour, holder: "other", renewed: 15 * time.Second, want: []string{other, leads}},
		"past its end":         {after: time.Hour, holder: "other", renewed: 16 * time.Second, want: []string{free + `04Z"`, leads}},
		"released":             {after: time.Hour, want: []string{free + `20Z"`, leads}},
		"without a permission": {after: time.Hour, err: errors.New("forbidden"), want: []string{`"msg"="cannot read the lease"`, leads}},
		"within the lease":     {after: 19 * time.Second, holder: "other", want: []string{leads}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				elected := make(chan struct{})
				time.AfterFunc(c.after, func() { close(elected) })
				const standby = 20 * time.Second
				lease := coordinationv1.LeaseSpec{
					HolderIdentity: ptr.To(c.holder), LeaseDurationSeconds: ptr.To[int32](15),
					RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(standby - c.renewed))),
				}
				l := leadership{
					lease: types.NamespacedName{Namespace: "home", Name: "reloader"}, after: standby, elected: elected,
					reader: leaseReader{lease: lease, err: c.err},
					log:    funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
				}
				require.NoError(t, l.Start(t.Context()))
				require.Len(t, lines, len(c.want))
				for i, want := range c.want {
					assert.Contains(t, lines[i], want)
				}
			})
		})
	}
}

func TestLeadershipEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, leadership{after: time.Hour}.Start(ctx))
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
