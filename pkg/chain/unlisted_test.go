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
		assert.True(t, w.State("ns", proxy).Hold.NotReadYet)
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
