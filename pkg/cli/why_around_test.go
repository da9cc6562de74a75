package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pod-reloader/pod-reloader/pkg/explain"
)

// eventLister lists Events, or fails.
type eventLister struct {
	client.Reader
	items []eventsv1.Event
	err   error
}

func (l eventLister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*eventsv1.EventList).Items = l.items
	return l.err
}

// said returns an Event of an installation, some minutes after the first.
func said(installation, reason string, minutes int) eventsv1.Event {
	at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC))
	return eventsv1.Event{
		Regarding: corev1.ObjectReference{Kind: "Deployment", Name: installation}, Reason: reason, EventTime: at, Note: fmt.Sprintf("%s %d", reason, minutes),
	}
}

func TestLastReportOfTheWatchesCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []eventsv1.Event
		want   string // empty: the watches work
	}{
		"nothing was said":       {nil, ""},
		"other Events":           {[]eventsv1.Event{said("a", "ScalingReplicaSet", 1)}, ""},
		"the watches fail":       {[]eventsv1.Event{said("a", "WatchFailing", 1)}, "WatchFailing 1"},
		"others fail since":      {[]eventsv1.Event{said("a", "WatchFailing", 2), said("a", "WatchFailing", 1)}, "WatchFailing 2"},
		"the watches work again": {[]eventsv1.Event{said("a", "WatchRecovered", 2), said("a", "WatchFailing", 1)}, ""},
		"the watches fail again": {[]eventsv1.Event{said("a", "WatchRecovered", 2), said("a", "WatchFailing", 3)}, "WatchFailing 3"},
		"of one installation":    {[]eventsv1.Event{said("a", "WatchFailing", 1), said("b", "WatchRecovered", 2)}, "WatchFailing 1"},
		"of two":                 {[]eventsv1.Event{said("a", "WatchFailing", 1), said("b", "WatchFailing", 2)}, "WatchFailing 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := watchFailure(t.Context(), eventLister{items: c.events}, "pod-reloader")
			require.NoError(t, err)
			if c.want == "" {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, c.want, got.Message)
		})
	}
	_, err := watchFailure(t.Context(), eventLister{err: errors.New("forbidden")}, "pod-reloader")
	assert.ErrorContains(t, err, "cannot be listed: forbidden")
}

func TestMissingDigestKeyDiffersFromAForbiddenOne(t *testing.T) {
	t.Parallel()
	f := &whyFlags{shared: shared{own: "pod-reloader"}, key: "key"}
	secrets := schema.GroupResource{Resource: "secrets"}
	missing := fmt.Errorf("read: %w", apierrors.NewNotFound(secrets, "key"))
	assert.Contains(t, f.noKey(missing), "the Secret pod-reloader/key does not exist")
	assert.Contains(t, f.noKey(fmt.Errorf("read: %w", errUnusable)), "is not usable; the replicas that run go on with the keys in their memory")
	assert.Empty(t, f.noKey(apierrors.NewForbidden(secrets, "key", errors.New("no permission"))), "there may be one")
	assert.Empty(t, f.noKey(nil))
}

// leaseGetter returns a Lease, or fails.
type leaseGetter struct {
	client.Reader
	spec coordinationv1.LeaseSpec
	err  error
}

func (g leaseGetter) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*coordinationv1.Lease).Spec = g.spec
	return g.err
}

func TestLeaseSaysUntilWhenSomeoneLeads(t *testing.T) {
	t.Parallel()
	name := types.NamespacedName{Namespace: "tools", Name: "reloader"}
	renewed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	held := coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(renewed)), LeaseDurationSeconds: ptr.To(int32(15))}
	lease, err := leaseOf(t.Context(), leaseGetter{spec: held}, name)
	require.NoError(t, err)
	assert.Equal(t, &explain.Lease{Name: "tools/reloader", Renewed: renewed, Ends: renewed.Add(15 * time.Second)}, lease)

	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for _, unknown := range []error{apierrors.NewNotFound(leases, "reloader"), apierrors.NewForbidden(leases, "reloader", errors.New("no permission"))} {
		lease, err = leaseOf(t.Context(), leaseGetter{err: unknown}, name)
		require.NoError(t, err, "an installation without an election has neither a lease nor the permission")
		assert.Nil(t, lease)
	}
	_, err = leaseOf(t.Context(), leaseGetter{err: errors.New("connection refused")}, name)
	assert.ErrorContains(t, err, "cannot find out whether a replica leads")
}
