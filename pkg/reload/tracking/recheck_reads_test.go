package tracking

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// readsOnce is a Store that calls read for each object.
type readsOnce struct {
	reads atomic.Int32
	read  func(ref reference.Ref) error
}

func (r *readsOnce) Recheck(_ context.Context, _ string, ref reference.Ref) error {
	r.reads.Add(1)
	return r.read(ref)
}

func TestRecheckLogsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) {
		if strings.Contains(args, "cannot read a config object") {
			failures.Add(1)
			assert.Contains(t, args, "away")
		}
	}, funcr.Options{Verbosity: 1}))
	l, _, _ := trackingWithFailing(t, failing{"secrets": true, "configmaps shop": true}, nil, nil)
	store := &readsOnce{read: func(ref reference.Ref) error {
		if ref.Kind == reference.ConfigMap {
			return errors.New("away")
		}
		return nil
	}}
	l.tracking.rechecks.with.Store = store
	l.tracking.rechecks.once(ctx)
	assert.Equal(t, int32(3), store.reads.Load())
	assert.Equal(t, int32(1), failures.Load())
}

func TestRecheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, rechecked, _ := trackingWithFailing(t, failing{"secrets": true, "fleets.example.com": true}, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.tracking.rechecks.once(ctx)
		assert.Empty(t, rechecked.seen)
		assert.Empty(t, rechecked.queued())
	})
}
