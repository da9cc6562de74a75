package outbox

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-reloader/pod-reloader/pkg/logtest"
)

// A failed attempt is counted each time, by the status of its answer, and logged once a minute.
func TestFailedAttemptsAreCountedAndLogged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		code string
	}{
		"no answer":            {errors.New("no connection"), "none"},
		"not allowed":          {apierrors.NewForbidden(resource, "", errors.New("no")), "403"},
		"no status of HTTP":    {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 777}}, "other"},
		"status without error": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTeapot}}, "418"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				log, lines := logtest.New()
				o := New(&api{answer: func(context.Context, *eventsv1.Event, int) error { return tc.err }}, registry, log)
				o.quietPeriod = 0
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					assert.NoError(t, o.Start(ctx))
				}()
				m := message("shop", "a")
				m.Event.Reason, m.Event.Regarding = "Reloaded", corev1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "cart"}
				o.Put(m)
				pass(20 * time.Second)
				assert.Equal(t, 5, int(testutil.ToFloat64(o.failures.attempts.WithLabelValues(tc.code))), "after 0, 1, 3, 7 and 15 seconds")
				require.Len(t, lines(), 1)
				for _, want := range []string{`"event"="Reloaded"`, `"namespace"="shop"`, `"name"="cart"`, tc.err.Error()} {
					assert.Contains(t, lines()[0], want)
				}
				waiting, err := testutil.GatherAndCount(registry, "pod_reloader_pending_events")
				require.NoError(t, err)
				assert.Equal(t, 1, waiting)
				pass(time.Minute)
				assert.Len(t, lines(), 2)
				cancel()
				<-ended
			})
		})
	}
}
