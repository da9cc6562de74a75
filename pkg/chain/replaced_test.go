package chain_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-reloader/pod-reloader/pkg/chain"
)

// A watch that is made anew ends some time later: what its goroutines still deliver is of before.
func TestAWatchThatWasReplacedDeliversNothing(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(of chain.Watching, before *unstructured.Unstructured){
		"a deletion": func(of chain.Watching, before *unstructured.Unstructured) { of.Deliver(before, nil) },
		"an earlier version": func(of chain.Watching, before *unstructured.Unstructured) {
			of.Reduce(before)
			of.Deliver(nil, before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.graph()
				before := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secret": "other"}}}
				before.SetNamespace("ns")
				before.SetName("s")
				before.SetUID("uid-0")
				entry, old := w.entry(), w.Watching(services)
				old.Refused(t.Context())
				w.pass(time.Minute)
				late(old, before)
				w.pass(time.Minute)
				assert.Equal(t, entry, w.entry())
			})
		})
	}
}

// Before the next watch has listed the objects, nothing is known of them: none is missing.
func TestAWatchThatWasReplacedIsNotSynced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.graph()
		old := w.Watching(services)
		w.refuse(services, apierrors.NewForbidden(services.GroupResource(), "", nil))
		old.Refused(t.Context())
		w.pass(time.Second)
		forbidden := "kafkaservices.kroxylicious.io/s is forbidden: the resource kafkaservices.kroxylicious.io"
		assert.Equal(t, forbidden, w.hold())
		old.Synced()
		w.pass(200 * time.Millisecond)
		assert.Equal(t, forbidden, w.hold())
	})
}
