package chain_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/digest/digesttest"
	"github.com/pod-reloader/pod-reloader/pkg/referent"
)

// unlisted is a world in which services cannot be listed, and routes refer to nothing.
func unlisted(t *testing.T, err error) (w *world, mend func()) {
	t.Helper()
	w = newWorld(t)
	mend = w.refuse(services, err)
	w.contents[tls] = "1"
	w.put(routes, "r", map[string]any{})
	w.put(services, "s", map[string]any{"secret": "tls"})
	w.put(proxies, "p", map[string]any{"service": "s"})
	w.Configure(append(proxyToSecret(), referent.Definition{ID: "routes", GVR: routes}))
	return w, mend
}

func TestResourceThatCannotBeListedSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, mend := unlisted(t, apierrors.NewInternalError(errors.New("conversion webhook failed")))
		waiting, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		require.ErrorIs(t, w.WaitForSync(waiting), context.DeadlineExceeded)
		const why = "unsynced: the resource kafkaservices.kroxylicious.io cannot be read: Internal error occurred: conversion webhook failed"
		assert.Equal(t, "kafkaservices.kroxylicious.io/s is "+why, w.hold())
		assert.True(t, w.State("ns", proxy).Hold.NotReadYet, "the resource has never been listed")
		picture, err := w.Picture("ns")
		require.NoError(t, err)
		assert.Contains(t, picture.Text(), "kafkaroutes.kroxylicious.io/r in namespace ns  [ok]\n")
		assert.Contains(t, picture.Text(), "kafkaservices.kroxylicious.io/s  ["+why+"]\n")
		assert.Contains(t, picture.Text(), "\nkafkaservices.kroxylicious.io  ["+why+"]\n")

		w.rotate(digesttest.Ring(t, "2"))
		w.pass(time.Second)
		assert.Equal(t, "kafkaservices.kroxylicious.io/s is "+why, w.hold(), "under other digest keys, too")
		mend()
		w.pass(2 * time.Minute)
		assert.Empty(t, w.hold())
	})
}

// A definition whose conversion fails is installed; a permission that was granted is not missing.
func TestResourceThatFailsAfterARefusalSaysWhy(t *testing.T) {
	t.Parallel()
	const why = "kafkaservices.kroxylicious.io/s is unsynced: the resource kafkaservices.kroxylicious.io cannot be read: Internal error occurred: " +
		"conversion webhook failed"
	for name, refusal := range map[string]error{
		"not installed": apierrors.NewNotFound(services.GroupResource(), ""),
		"forbidden":     apierrors.NewForbidden(services.GroupResource(), "", errors.New("no permission")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, mend := unlisted(t, refusal)
				w.pass(5 * time.Second)
				refused := w.hold()
				require.NotContains(t, refused, "unsynced")
				require.NotZero(t, w.refused())
				repair := w.refuse(services, apierrors.NewInternalError(errors.New("conversion webhook failed")))
				mend()
				w.ask()
				assert.Equal(t, refused, w.hold(), "one failure does not replace the reason")
				w.take()
				w.pass(2 * time.Minute)
				assert.Equal(t, why, w.hold())
				assert.True(t, w.State("ns", proxy).Hold.NotReadYet, "the resource has not been listed since")
				assert.Zero(t, w.refused())
				assert.Contains(t, w.take(), "ns kafkaproxies.kroxylicious.io/p", "the loop looks again")
				repair()
				w.pass(2 * time.Minute)
				assert.Empty(t, w.hold())
			})
		})
	}
}

// A failure that comes and goes beside a refusal does not change the reason at each answer.
func TestRefusalAmongFailuresRemainsTheReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		missing := apierrors.NewNotFound(services.GroupResource(), "")
		w, _ := unlisted(t, missing)
		w.pass(5 * time.Second)
		refused := w.hold()
		for range 10 {
			w.Watching(services).Failed(t.Context(), errors.New("no answer"))
			w.pass(digest.ReportHoldAfter + time.Second)
			w.Watching(services).Failed(t.Context(), missing)
			w.pass(time.Second)
			w.Watching(services).Failed(t.Context(), errors.New("no answer"))
			w.pass(time.Second)
			assert.Equal(t, refused, w.hold())
		}
	})
}

// A list that was complete counts, whatever fails later.
func TestFailureAfterTheFirstListHoldsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		before := w.entry()
		w.take()
		w.Watching(services).Failed(t.Context(), errors.New("no answer"))
		w.pass(time.Second)
		assert.Equal(t, before, w.entry())
		assert.Empty(t, w.take())
	})
}

func TestPictureNamesResourcesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, resource := range []schema.GroupVersionResource{services, proxies} {
			w.refuse(resource, apierrors.NewForbidden(resource.GroupResource(), "", errors.New("no permission")))
		}
		w.Configure(proxyToSecret())
		require.NoError(t, w.WaitForSync(t.Context()))
		picture, err := w.Picture("ns")
		require.NoError(t, err)
		assert.Equal(t, "kafkaproxies.kroxylicious.io  [forbidden: the resource kafkaproxies.kroxylicious.io]\n"+
			"kafkaservices.kroxylicious.io  [forbidden: the resource kafkaservices.kroxylicious.io]\n", picture.Text())
	})
}
