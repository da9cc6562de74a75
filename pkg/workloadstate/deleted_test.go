package workloadstate

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

// The definition is deleted with its objects while no watch is open.
func TestWorkloadsOfADefinitionThatIsDeletedWhileItsWatchIsInterruptedAreGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, changes := followed(t)
		<-time.After(30 * time.Second)
		d.set(schema.GroupVersionResource{}, nil) // the watch ends half a minute later
		<-time.After(2 * time.Minute)
		await(t, changes, "gadgets@5 > -")
		d.set(resource("v1", "gadgets"), nil)
		await(t, changes, "- > gadgets@5", "gadgets@5 > gadgets@5")
	})
}

func TestWorkloadsStayWhereTheKindMayBeInstalled(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason         string
		served         schema.GroupVersionResource
		away, unlisted error
	}{
		"Withdrawn version": {reason: "The workloads exist in the other version.", served: resource("v2", "gadgets")},
		"Lookups fail":      {reason: "Nothing is known.", away: errors.New("away")},
		"Versions unknown":  {reason: "It may be served in another version.", unlisted: errors.New("away")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, changes := followed(t)
				d.mu.Lock()
				d.unlisted = test.unlisted
				d.mu.Unlock()
				d.set(test.served, test.away)
				<-time.After(time.Hour)
				assert.Empty(t, changes, test.reason)
				d.set(resource("v1", "gadgets"), nil)
				await(t, changes, "gadgets@5 > gadgets@5")
			})
		})
	}
}

// An API server among several can be the last to learn of a definition, or have forgotten it for a moment.
func TestOneLookupThatFindsNothingDeletesNoWorkloads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, changes := followed(t)
		lookups := d.lookups()
		for range 3 {
			<-time.After(30 * time.Second)
			d.set(schema.GroupVersionResource{}, nil)
			d.awaitRequestAfterLookup()
			d.set(resource("v1", "gadgets"), nil)
			await(t, changes, "gadgets@5 > gadgets@5")
			<-time.After(2 * steady)
		}
		assert.GreaterOrEqual(t, d.lookups(), lookups+3)
		for len(changes) > 0 {
			assert.Equal(t, "gadgets@5 > gadgets@5", <-changes)
		}
	})
}

// awaitRequestAfterLookup waits for a lookup, and for a request that is refused after it.
func (d *definitions) awaitRequestAfterLookup() {
	for before := d.lookups(); d.lookups() == before; {
		<-time.After(10 * time.Millisecond)
	}
	for d.seen(); ; {
		if _, _, requests := d.seen(); requests > 0 {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Each namespace has requests of its own, and one of them may see the definition.
func TestEachNamespaceDeletesItsOwnWorkloads(t *testing.T) {
	t.Parallel()
	d := &definitions{}
	s := New(Options{Mapper: d, Config: &rest.Config{Host: "http://server", QPS: -1}, HTTPClient: &http.Client{Transport: d}, Log: logr.Discard()})
	var changes []string
	w := s.Watch(gadget(), func(before, after workload.Summary, listed string) {
		changes = append(changes, formatChange(before, after, listed))
	})
	to, err := s.resolve(&finder{of: d, known: resource("v1", "gadgets")}, gadget())
	require.NoError(t, err)
	w.target.Store(&to)
	for _, namespace := range []string{"bank", "shop"} {
		w.put(keptAt(namespace, namespace, "u", "5"), "")
	}
	changes = nil
	f := &follower{of: w, namespace: "shop"}
	for range inARow {
		w.lookups.add(uninstalled, nil)
	}
	_, err = f.request(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.Equal(t, []string{"shop@5 > -"}, changes)
}
