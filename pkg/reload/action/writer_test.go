package action

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/inflight"
	"github.com/pod-reloader/pod-reloader/pkg/reload/gather"
	"github.com/pod-reloader/pod-reloader/pkg/reload/reloadtest"
	"github.com/pod-reloader/pod-reloader/pkg/reload/state"
	"github.com/pod-reloader/pod-reloader/pkg/workload"
)

func TestRetryWaitsBehindFirstAttempts(t *testing.T) {
	t.Parallel()
	actions, s := newActions(Options{}, &reloadtest.Outbox{}), reloadtest.Web(t)
	var order []workload.Key
	actions.slots = inflight.New(inflight.Options{}, func(key workload.Key) { order = append(order, key) })
	blocks, first := gather.Subject{Key: workload.Key{Namespace: "shop", Name: "blocks"}}, gather.Subject{Key: workload.Key{Namespace: "shop", Name: "first"}}
	require.True(t, actions.MayWrite(blocks, inflight.Urgent))
	actions.backoff.When(s.Key, state.Rarely)
	require.False(t, actions.MayWrite(s, inflight.Urgent))
	require.False(t, actions.MayWrite(first, inflight.Background))
	actions.slots.Leave(s.Key)
	actions.slots.Leave(first.Key)
	actions.slots.Leave(blocks.Key)
	assert.Equal(t, []workload.Key{first.Key}, order)
}

func TestAnsweredWriteIsNoHangingOne(t *testing.T) {
	t.Parallel()
	actions, s := newActions(Options{}, &reloadtest.Outbox{}), reloadtest.Web(t)
	denied := errors.New("denied")
	err := actions.write(t.Context(), s, func(context.Context) error { return denied })
	require.ErrorIs(t, err, denied)
	require.NotErrorIs(t, err, errNoAnswer)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = actions.write(ended, s, func(ctx context.Context) error { return ctx.Err() })
	assert.NotErrorIs(t, err, errNoAnswer, "the process ends")
}
