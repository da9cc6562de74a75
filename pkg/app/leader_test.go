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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseReader reads a lease that another replica holds, or fails.
type leaseReader struct {
	client.Reader
	err error
}

func (r leaseReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*coordinationv1.Lease).Spec.HolderIdentity = ptr.To("other")
	return r.err
}

func TestLogSaysWhoLeads(t *testing.T) {
	t.Parallel()
	const standby = `"msg"="another replica leads" "lease"="home/reloader" "leader"="other"`
	const leads = `"msg"="this replica leads" "lease"="home/reloader"`
	for name, c := range map[string]struct {
		after time.Duration // until this replica leads
		err   error
		want  []string
	}{
		"at once":              {time.Second, nil, []string{leads}},
		"later":                {time.Hour, nil, []string{standby, leads}},
		"without a permission": {time.Hour, errors.New("forbidden"), []string{`"msg"="cannot read the lease"`, leads}},
		"within the lease":     {19 * time.Second, nil, []string{leads}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				elected := make(chan struct{})
				time.AfterFunc(c.after, func() { close(elected) })
				l := leadership{
					lease: types.NamespacedName{Namespace: "home", Name: "reloader"}, after: 20 * time.Second, elected: elected, reader: leaseReader{err: c.err},
					log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
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
