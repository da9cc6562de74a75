package outbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An alert on the gauge must not fire for Warnings that are delayed on purpose, again and again.
func TestPendingEventsAreThoseWhoseFirstAttemptIsDue(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(_ context.Context, event *eventsv1.Event, _ int) error {
		if event.Name == "written" {
			return nil
		}
		return apierrors.NewForbidden(resource, event.Name, errors.New("no"))
	}}
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		o := New(a, registry, logr.Discard())
		o.quietPeriod = 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.Start(ctx) }()
		delayed := func(subject, name string) Message {
			m := message("shop", name)
			m.Subject, m.Topic, m.Delay = subject, "Failed", time.Minute
			return m
		}
		o.Put(delayed("a", "written"))
		o.Put(delayed("b", "refused"))
		assert.Equal(t, 2, o.Waiting())
		assert.Zero(t, pendingIn(t, registry), "both are delayed")
		pass(time.Minute)
		assert.Equal(t, 1, pendingIn(t, registry), "one is written, one is refused")
		o.Put(delayed("b", "another text"))
		assert.Equal(t, 1, o.Waiting(), "it replaces the one that was refused")
		assert.Equal(t, 1, pendingIn(t, registry), "whose first attempt was due")
		o.Put(message("shop", "not delayed"))
		assert.Equal(t, 2, pendingIn(t, registry))
		o.Put(delayed("c", "later"))
		assert.Equal(t, 2, pendingIn(t, registry))
		assert.Equal(t, 3, o.Waiting())
		cancel()
		require.NoError(t, <-ended)
	})
}

// pendingIn returns the value of the gauge.
func pendingIn(t *testing.T, registry *prometheus.Registry) int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "pod_reloader_pending_events" {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	require.Fail(t, "the gauge is missing")
	return 0
}
